#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The clients of tests/bench/s3-clients that are Python modules:
s3-clients.py MODULE put|list|get FOLDER. AWS_ENDPOINT_URL says where."""
import concurrent.futures
import os
import shutil
import sys
import tempfile

URL = os.environ['AWS_ENDPOINT_URL']
SHARD = 1 << 14  # bytes: some dozen objects of 100 samples, for faults to hit


def files(top):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            yield os.path.relpath(path, top), path


def write(top, key, data):
    path = os.path.join(top, key)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(data)


def samples(top):
    """Key and bytes of the small files."""
    for key, path in sorted(files(top)):
        if os.path.getsize(path) < 1 << 20:
            with open(path, 'rb') as f:
                yield key, f.read()


class boto3:
    def __init__(self):
        import boto3
        self.s3 = boto3.client('s3', endpoint_url=URL)

    def put(self, top):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda f: self.s3.upload_file(f[1], 'data', f[0]),
                          files(top)))

    def list(self):
        for page in self.s3.get_paginator('list_objects_v2').paginate(
                Bucket='data'):
            for entry in page.get('Contents', []):
                print(entry['Key'])

    def get(self, top):
        def one(key, path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.s3.download_file('data', key, path)
        from_tree = os.path.join(os.path.dirname(top), 'names')
        with open(from_tree, encoding='utf-8') as f:
            keys = f.read().splitlines()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda k: one(k, os.path.join(top, k)), keys))


class s3torchconnector:
    def __init__(self):
        import s3torchconnector as s
        self.config = s.S3ClientConfig(force_path_style=True, max_attempts=10)
        self.s = s

    def put(self, top):
        checkpoint = self.s.S3Checkpoint(
            region='us-east-1', endpoint=URL, s3client_config=self.config)
        for key, path in files(top):
            with open(path, 'rb') as f, checkpoint.writer(
                    f's3://data/{key}') as out:
                shutil.copyfileobj(f, out)

    def dataset(self):
        return self.s.S3IterableDataset.from_prefix(
            's3://data', region='us-east-1', endpoint=URL,
            s3client_config=self.config)

    def list(self):
        for entry in self.dataset():
            print(entry.key)

    def get(self, top):
        for entry in self.dataset():
            write(top, entry.key, entry.read())


class streaming:
    def put(self, top):
        from streaming import MDSWriter
        with MDSWriter(out='s3://data/mds', columns={
                'key': 'str', 'data': 'bytes'}, size_limit=SHARD) as out:
            for key, data in samples(top):
                out.write({'key': key, 'data': data})

    def get(self, top):
        from streaming import StreamingDataset
        tree = dict(samples(os.path.join(os.path.dirname(top), 'tree')))
        data = StreamingDataset(remote='s3://data/mds', local=top,
                                download_retry=10, batch_size=1)
        assert {s['key']: s['data'] for s in data} == tree


def sample(item):
    return {'key': item[0], 'data': item[1]}


class litdata:
    def put(self, top):
        import litdata
        import boto3
        with tempfile.TemporaryDirectory() as folder:
            litdata.optimize(fn=sample, inputs=list(samples(top)),
                             output_dir=folder, chunk_bytes=SHARD,
                             num_workers=1, verbose=False)
            s3 = boto3.client('s3', endpoint_url=URL)
            for key, path in files(folder):
                s3.upload_file(path, 'data', f'lit/{key}')

    def get(self, top):
        import litdata
        from litdata.streaming import downloader
        # by boto3: its other way, obstore, refuses http without TLS
        downloader._OBSTORE_AVAILABLE = False
        tree = dict(samples(os.path.join(os.path.dirname(top), 'tree')))
        data = litdata.StreamingDataset(
            's3://data/lit', cache_dir=top, storage_options={
                'endpoint_url': URL})
        assert {s['key']: s['data'] for s in data} == tree


if __name__ == '__main__':
    sys.path.pop(0)  # nothing here stands for a module
    client = {'boto3': boto3, 's3torchconnector': s3torchconnector,
              'streaming': streaming, 'litdata': litdata}[sys.argv[1]]()
    getattr(client, sys.argv[2])(*sys.argv[3:])
