#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the requests of a model from recorded forwards, all of them and in order.

Columns: arrival_s,entry,<roots>. By default the extents are capped, so that the small
models answer in milliseconds on a host; --uncapped writes them as they were recorded.

  llama_decoder, llama_model, moe_layer (llama and Mixtral forwards):
    batch = min(batch, 4);
    prefill: seq = min(seq, 256), kv = 0;
    decode: seq = 1, and kv is what the capped caches hold: the capped prefill and the decode
    steps since. So kv still grows by one from step to step, as it was recorded.
    moe_layer has no cache and takes batch and seq alone. llama_model takes 500 forwards: the
    recording, then its beginning again.
  bert_encoder (BERT forwards): batch = min(batch, 4), seq = min(seq, 256).
  conv_block (no recorded vision model): arrivals and batches of the BERT forwards; an image's
    height and width are 8 plus the length modulo 25 and modulo 23.

NAME.requests.csv is what `make_requests.py NAME` prints.
"""

import argparse
import csv
import gzip
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(os.path.dirname(HERE), "data", "h200-op-traces")
MAX_BATCH, MAX_SEQ = 4, 256
MODEL_FORWARDS = 500


def recorded(traces=TRACES, name="llama"):
    """The forwards as dictionaries: fwd, t_us, batch, seq, kv are integers."""
    with gzip.open(os.path.join(traces, f"{name}.fwd.csv.gz"), "rt") as file:
        for row in csv.DictReader(file):
            for column in ("fwd", "t_us", "batch", "seq", "kv"):
                row[column] = int(row[column])
            yield row


def repeated(forwards, count):
    """`count` forwards: the recording, then the recording again a second after its end."""
    forwards, result, start = list(forwards), [], 0
    while len(result) < count:
        result += [dict(row, t_us=row["t_us"] + start) for row in forwards]
        start = result[-1]["t_us"] + 1000000
    return result[:count]


def capped(forwards):
    held = 0
    for row in forwards:
        row = dict(row, batch=min(row["batch"], MAX_BATCH))
        if row["phase"] == "decode":
            row.update(kv=held)
        else:
            row.update(seq=min(row["seq"], MAX_SEQ), kv=0)
        held = row["kv"] + row["seq"]
        yield row


def images(forwards):
    for row in forwards:
        yield dict(row, batch=min(row["batch"], MAX_BATCH), height=8 + row["seq"] % 25,
                   width=8 + row["seq"] % 23)


def requests(forwards, entry="decoder", roots=("batch", "seq", "kv")):
    text = f"arrival_s,entry,{','.join(roots)}\n"
    for row in forwards:
        text += f"{row['t_us'] / 1e6:.6f},{entry},{','.join(str(row[r]) for r in roots)}\n"
    return text


# Name: recording, entry, roots, what makes requests of the recorded forwards.
MODELS = {
    "llama_decoder": ("llama", "decoder", ("batch", "seq", "kv"), capped),
    "llama_model": ("llama", "llama", ("batch", "seq", "kv"),
                    lambda forwards: capped(repeated(forwards, MODEL_FORWARDS))),
    "moe_layer": ("moe", "moe", ("batch", "seq"), capped),
    "bert_encoder": ("bert", "encoder", ("batch", "seq"), capped),
    "conv_block": ("bert", "block", ("batch", "height", "width"), images),
}


def text(name, traces=TRACES):
    """The content of NAME.requests.csv."""
    recording, entry, roots, make = MODELS[name]
    return requests(make(recorded(traces, recording)), entry, roots)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", choices=MODELS, default="llama_decoder")
    parser.add_argument("--uncapped", action="store_true",
                        help="extents as recorded (where the recorded model has them)")
    parser.add_argument("--traces", default=TRACES, help="folder of the *.fwd.csv.gz")
    args = parser.parse_args()
    recording, entry, roots, make = MODELS[args.model]
    if args.uncapped and make is images:
        parser.error(f"--uncapped: nothing was recorded for {args.model}")
    forwards = recorded(args.traces, recording)
    sys.stdout.write(requests(forwards, entry, roots) if args.uncapped
                     else text(args.model, args.traces))


if __name__ == "__main__":
    main()
