"""Tables that gather what is emitted, whoever emits it and in whichever order."""
