#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a profile file: make_profile.py SCHEMA OUT RUNS HASH:DIM=VALUE:RUNS_USED...

Each key has one fact, `dim == value`, for the kernel with the hash (64 hexadecimal digits).
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

import xxhash

schema, out, runs = sys.argv[1:4]
keys = []
for rank, spec in enumerate(sys.argv[4:]):
    digest, fact, used = spec.split(":")
    dim, value = fact.split("=")
    keys.append({"kernel_hash": {"bytes": list(bytes.fromhex(digest))},
                 "facts": [{"kind": "eq", "dim": int(dim), "a": int(value), "b": 0}],
                 "first_use_rank": rank, "runs_used": float(used)})
with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "profile.json")
    with open(path, "w") as file:
        json.dump({"format_version": 1, "runs": float(runs), "keys": keys}, file)
    subprocess.run(["flatc", "--binary", "-o", directory, schema, path], check=True)
    (name,) = (n for n in os.listdir(directory) if n != "profile.json")
    with open(os.path.join(directory, name), "rb") as file:
        payload = file.read()
# The envelope: magic, kind, format, size, check, XXH3-128 of the payload (low half
# first), 16 reserved bytes; check is the XXH3-64 of the header with 0 in its place.
head = b"PGKPFILE" + struct.pack("<IIQ", 3, 2, len(payload))
checksum = struct.pack("<QQ", *divmod(xxhash.xxh3_128_intdigest(payload), 1 << 64)[::-1]) + bytes(16)
check = struct.pack("<Q", xxhash.xxh3_64_intdigest(head + bytes(8) + checksum))
with open(out, "wb") as file:
    file.write(head + check + checksum + payload)
