"""Where events enter and leave: files, standard input and output, memory, a generator."""
