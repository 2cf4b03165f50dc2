#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read all objects of a bucket once, in random order, on several threads.

    s3.py s3://BUCKET[/PREFIX] RECORD [threads=8] [seed=1]

A client of S3 in the standard library alone: it lists the bucket, signs its
requests (Signature Version 4) with the key of the environment, and tries again,
with back-off and jitter, what a store asks it to. The record has the times of
its first bytes. workloads/object-store.yaml runs it against a gpemu-s3.
"""
import datetime
import hashlib
import hmac
import http.client
import json
import os
import random
import sys
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ET

TRIES = 10
ENDPOINT = urllib.parse.urlsplit(os.environ.get("AWS_ENDPOINT_URL", ""))
REGION = os.environ.get("AWS_REGION", "us-east-1")


def sign(path, query):
    """The headers of a GET without a body."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": ENDPOINT.netloc, "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
               "x-amz-date": now}
    names = ";".join(headers)
    request = "\n".join(["GET", path, query, *(f"{k}:{v}" for k, v in headers.items()),
                         "", names, "UNSIGNED-PAYLOAD"])
    scope = f"{now[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in scope.split("/") + [text]:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={os.environ['AWS_ACCESS_KEY_ID']}/{scope}, "
        f"SignedHeaders={names}, Signature={key.hex()}")
    return headers


class Client:
    """One connection, and what it has seen."""

    def __init__(self, seed):
        self.connection = None
        self.random = random.Random(seed)
        self.first_byte_s, self.retries, self.bytes = [], 0, 0

    def once(self, path, query):
        if not self.connection:
            self.connection = http.client.HTTPConnection(ENDPOINT.netloc, timeout=60)
        target = path + ("?" + query if query else "")
        begin = time.monotonic()
        self.connection.request("GET", target, headers=sign(path, query))
        answer = self.connection.getresponse()
        took = time.monotonic() - begin
        return answer.status, answer.read(), took

    def get(self, path, **query):
        path = urllib.parse.quote(path)
        query = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote,
                                       safe="")
        for i in range(TRIES):
            try:
                status, body, took = self.once(path, query)
            except (OSError, http.client.HTTPException):
                self.connection, status, body = None, 0, b"the connection ended"
            if status == 200:
                self.first_byte_s.append(took)
                self.bytes += len(body)
                return body
            if status and status < 500 and status != 429:
                break
            self.retries += 1
            time.sleep(self.random.uniform(0, min(5, .05 * 2 ** i)))
        raise SystemExit(f"s3.py: GET {path}: {status} {body.decode(errors='replace')}")


def keys_of(client, bucket, prefix):
    tag, more = "{http://s3.amazonaws.com/doc/2006-03-01/}", {}
    while more is not None:
        page = ET.fromstring(client.get("/" + bucket, **{"list-type": 2, "prefix": prefix},
                                        **more))
        yield from (e.findtext(tag + "Key") for e in page.iter(tag + "Contents"))
        token = page.findtext(tag + "NextContinuationToken")
        more = {"continuation-token": token} if token else None


def main(url, record, *options):
    options = {"threads": 8, "seed": 1, **{k: int(v) for k, v in (o.split("=") for o in options)}}
    bucket, _, prefix = url[len("s3://"):].partition("/")
    keys = list(keys_of(Client(0), bucket, prefix))
    random.Random(options["seed"]).shuffle(keys)
    clients = [Client(f"{options['seed']} {i}") for i in range(options["threads"])]
    failed, lock = [], threading.Lock()

    def work(client):
        while not failed:
            with lock:
                if not keys:
                    return
                key = keys.pop()
            try:
                client.get(f"/{bucket}/{key}")
            except SystemExit as e:
                failed.append(e)

    threads = [threading.Thread(target=work, args=(c,)) for c in clients]
    begin = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    seconds = time.monotonic() - begin
    if failed:
        raise failed[0]
    times = sorted(t for c in clients for t in c.first_byte_s)
    n_bytes = sum(c.bytes for c in clients)
    with open(record, "w") as f:
        json.dump({"seconds": seconds, "objects": len(times), "bytes": n_bytes,
                   "mib_per_s": n_bytes / seconds / 2**20,
                   "retries": sum(c.retries for c in clients),
                   "first_byte_ms": {"p50": 1000 * times[len(times) // 2],
                                     "p99": 1000 * times[len(times) * 99 // 100]}}, f)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY":
        if not os.environ.get(name):
            sys.exit(f"s3.py: {name} is not set")
    main(*sys.argv[1:])
