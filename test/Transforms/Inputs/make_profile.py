#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a profile file: make_profile.py SCHEMA OUT RUNS HASH:DIM=VALUE:RUNS_USED...

Each key has one fact, `dim == value`, for the kernel with the hash (64 hexadecimal digits).
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

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
# The envelope: magic, kind, format, size, check, BLAKE2b-256 of the payload; check is the
# start of the BLAKE2b-256 of the header with 0 in its place.
head = b"PGKPFILE" + struct.pack("<IIQ", 3, 1, len(payload))
checksum = hashlib.blake2b(payload, digest_size=32).digest()
check = hashlib.blake2b(head + bytes(8) + checksum, digest_size=32).digest()[:8]
with open(out, "wb") as file:
    file.write(head + check + checksum + payload)
