#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes requests of @decoder from the recorded llama forwards, all of them and in order.

Columns: arrival_s,entry,batch,seq,kv. By default the extents are capped, so that the small
model answers in milliseconds on a host:
  batch = min(batch, 4);
  prefill: seq = min(seq, 256), kv = 0;
  decode: seq = 1, and kv is what the capped caches hold: the capped prefill and the decode
  steps since. So kv still grows by one from step to step, as it was recorded.
--uncapped writes the extents as they were recorded.

llama_decoder.requests.csv is what `make_requests.py` prints.
"""

import argparse
import csv
import gzip
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(os.path.dirname(HERE), "data", "h200-op-traces")
MAX_BATCH, MAX_SEQ = 4, 256


def recorded(traces=TRACES):
    """The forwards as dictionaries: fwd, t_us, batch, seq, kv are integers."""
    with gzip.open(os.path.join(traces, "llama.fwd.csv.gz"), "rt") as file:
        for row in csv.DictReader(file):
            for name in ("fwd", "t_us", "batch", "seq", "kv"):
                row[name] = int(row[name])
            yield row


def capped(forwards):
    held = 0
    for row in forwards:
        row = dict(row, batch=min(row["batch"], MAX_BATCH))
        if row["phase"] == "prefill":
            row.update(seq=min(row["seq"], MAX_SEQ), kv=0)
        else:
            row.update(kv=held)
        held = row["kv"] + row["seq"]
        yield row


def requests(forwards):
    text = "arrival_s,entry,batch,seq,kv\n"
    for row in forwards:
        text += f"{row['t_us'] / 1e6:.6f},decoder,{row['batch']},{row['seq']},{row['kv']}\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--uncapped", action="store_true", help="extents as recorded")
    parser.add_argument("--traces", default=TRACES, help="folder of llama.fwd.csv.gz")
    args = parser.parse_args()
    forwards = recorded(args.traces)
    sys.stdout.write(requests(forwards if args.uncapped else capped(forwards)))


if __name__ == "__main__":
    main()
