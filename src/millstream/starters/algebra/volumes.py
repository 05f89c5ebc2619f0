"""The volume of every symbol over the last minute, and large trades. Run it with Python."""

from pathlib import Path

import millstream

trades = millstream.stream("trades", symbol="text", volume="integer", time="at")
recent = trades.range("1 min")
volumes = recent.aggregate(by=("symbol",), volume=("sum", lambda t: t.volume))
large = trades.filter(lambda t: t.volume >= 200)

if __name__ == "__main__":
    job = millstream.compile_flow(volumes=volumes, large=large).at(Path(__file__).parent)
    finished = job.run()  # trades.csv lies beside this file; engine="spark" for large data
    for name in job.program.outputs:
        print(name, *finished.rows(name), sep="\n    ")
