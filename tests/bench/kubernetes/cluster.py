# SPDX-License-Identifier: MIT
"""A cluster of one node, in namespaces of its own.

    with cluster.namespaces(folder):     the process that starts it: what the
        ...                              namespaces do not hold is put back
    with cluster.Cluster(...) as k8s:    in the namespaces, as their first
        ...                              process

In the namespaces /run, /var/lib and /var/log are the cluster's own, so that its
programs have their usual paths; the network is a loopback and a bridge of pods.
When the first process ends, the kernel ends all others and takes the mounts and
the network away.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

CONTROL = Path('/sys/fs/cgroup')
# What a kubelet sets. Source: setupKernelTunables of Kubernetes 1.20
SYSCTLS = ('vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic',
           'kernel/panic_on_oops', 'kernel/keys/root_maxkeys',
           'kernel/keys/root_maxbytes')
ADDRESS, SUBNET = '10.88.0.1', '10.88.0.0/16'  # private, in the namespace
PORT, PROXY = 16443, 8001
TOKEN = 'bench'
NODE = 'node'


class Error(Exception):
    """The cluster does not do what it was told, or not in time."""


# --- outside ----------------------------------------------------------------

def cgroups():
    """Those of containers, of each controller."""
    return {folder for top in CONTROL.glob('*/k8s.io')
            for folder, _, _ in os.walk(top)}


def remove_cgroups(but):
    """Those that came since, whose containers have ended or end in a moment:
    a group that has processes cannot be removed."""
    for _ in range(50):
        new = cgroups() - but
        for group in sorted(new, key=len, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(group)
                new.remove(group)
        if not new:
            break
        time.sleep(.1)


@contextlib.contextmanager
def namespaces(folder):
    """Kernel settings and control groups are as before when it ends."""
    before = {name: Path('/proc/sys', name).read_text() for name in SYSCTLS}
    groups = cgroups()
    try:
        yield ['unshare', '--mount', '--propagation', 'private', '--pid',
               '--mount-proc', '--net', '--ipc', '--uts', '--fork',
               '--kill-child']
    finally:
        for name, value in before.items():
            Path('/proc/sys', name).write_text(value)
        remove_cgroups(groups)
        shutil.rmtree(folder, ignore_errors=True)


# --- inside -----------------------------------------------------------------

def mount(folder):
    """The cluster's own system folders, below a folder."""
    for path in '/var/lib', '/var/log':
        mine = folder / path.replace('/', '_')
        mine.mkdir()
        subprocess.run(['mount', '--bind', mine, path], check=True)
    subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', '/run'], check=True)


def network():
    for words in ('link set lo up', 'link add pods type bridge',
                  f'address add {ADDRESS}/16 dev pods', 'link set pods up',
                  'route add default via 10.88.255.254'):
        subprocess.run(['ip', *words.split()], check=True)


class Cluster:
    """`cache`: what `build` made; `folder`: for files; images: archives."""

    def __init__(self, cache, folder, images):
        self.cache, self.folder, self.images = cache, folder, images
        self.processes = {}
        usr = cache / 'root' / 'usr'
        os.environ['PATH'] = ':'.join(
            [f'{cache}/bin', f'{usr}/bin', f'{usr}/sbin', os.environ['PATH']])
        os.environ['KUBECONFIG'] = str(folder / 'kubeconfig')
        os.environ['HOME'] = str(folder)  # kubectl's cache
        os.environ['TZ'] = 'UTC'  # of the logs of containers
        for name in 'http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY':
            os.environ.pop(name, None)

    def __enter__(self):
        os.chdir('/')
        mount(self.folder)
        network()
        self.write_files()
        self.start_control()
        self.start_node()
        return self

    def __exit__(self, *_):
        for name in reversed(list(self.processes)):
            self.kill(name)

    # files

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def write_files(self):
        self.write('tokens', f'{TOKEN},admin,admin,system:masters\n')
        self.write('kubeconfig', json.dumps({
            'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'x',
            'clusters': [{'name': 'x', 'cluster': {
                'server': f'https://127.0.0.1:{PORT}',
                'insecure-skip-tls-verify': True}}],
            'users': [{'name': 'x', 'user': {'token': TOKEN}}],
            'contexts': [{'name': 'x',
                          'context': {'cluster': 'x', 'user': 'x'}}]}))
        (self.folder / 'net.d').mkdir()
        self.write('net.d/10-pods.conf', json.dumps({
            'cniVersion': '0.3.1', 'name': 'pods', 'type': 'bridge',
            'bridge': 'pods', 'isGateway': True,
            'ipam': {'type': 'host-local', 'subnet': SUBNET}}))
        cni = self.cache / 'root/usr/lib/cni'
        self.write('containerd.toml', f'''version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni}"
conf_dir = "{self.folder}/net.d"
''')
        subprocess.run(['openssl', 'genrsa', '-out', self.folder / 'key',
                        '2048'], check=True, stderr=subprocess.DEVNULL)

    # processes

    def start(self, name, *args, program=None):
        """A daemon; its log is NAME.log."""
        with open(self.folder / f'{name}.log', 'ab') as out:
            self.processes[name] = subprocess.Popen(
                [program or name, *args], stdin=subprocess.DEVNULL,
                stdout=out, stderr=out)

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def wait(self, what, test, seconds=120):
        """The first true value of a test, and the seconds that it took."""
        start = time.monotonic()
        while True:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    self.fail(f'{name} has ended', name)
            found = test()
            took = time.monotonic() - start
            if found:
                return found, took
            if took > seconds:
                self.fail(f'after {seconds} s: not {what}', *self.processes)
            time.sleep(.1)

    def fail(self, text, *logs):
        for name in logs:
            lines = (self.folder / f'{name}.log').read_text().splitlines()
            print(f'--- {name}', *lines[-15:], sep='\n', file=sys.stderr)
        raise Error(text)

    def start_control(self):
        self.start('etcd', '--data-dir', '/run/etcd',
                   '--listen-client-urls', 'http://127.0.0.1:2379',
                   '--advertise-client-urls', 'http://127.0.0.1:2379',
                   '--listen-peer-urls', 'http://127.0.0.1:2380')
        key = self.folder / 'key'
        self.start('kube-apiserver', '--etcd-servers=http://127.0.0.1:2379',
                   '--bind-address=127.0.0.1', f'--secure-port={PORT}',
                   f'--advertise-address={ADDRESS}',
                   f'--cert-dir={self.folder}/certificates',
                   f'--token-auth-file={self.folder}/tokens',
                   '--authorization-mode=AlwaysAllow',
                   f'--service-account-key-file={key}',
                   f'--service-account-signing-key-file={key}',
                   '--service-account-issuer=https://local',
                   '--service-cluster-ip-range=10.0.0.0/24',
                   '--disable-admission-plugins=ServiceAccount')
        self.start('kubectl', 'proxy', f'--port={PROXY}')
        self.wait('an API server', lambda: self.get('/readyz') is not None)
        common = (f'--kubeconfig={self.folder}/kubeconfig',
                  '--leader-elect=false', '--port=0')
        self.start('kube-controller-manager', *common,
                   '--controllers=*,-nodeipam')
        self.start('kube-scheduler', *common)

    def start_node(self):
        self.start('containerd', '--config', self.folder / 'containerd.toml')
        self.wait('a container runtime', lambda: not self.ctr('version'))
        for image in self.images:
            if self.ctr('images', 'import', image):
                raise Error(f'ctr does not import {image}')
        self.start_kubelet()
        self.wait('a node that is ready', self.ready)

    def ctr(self, *args):
        return subprocess.run(['ctr', '-n', 'k8s.io', *args],
                              capture_output=True).returncode

    def start_kubelet(self):
        self.start('kubelet', '--container-runtime=remote',
                   '--container-runtime-endpoint='
                   'unix:///run/containerd/containerd.sock',
                   '--fail-swap-on=false', '--cgroup-driver=cgroupfs',
                   '--cgroups-per-qos=false', '--enforce-node-allocatable=',
                   f'--kubeconfig={self.folder}/kubeconfig',
                   '--authorization-mode=AlwaysAllow',
                   f'--hostname-override={NODE}', f'--node-ip={ADDRESS}',
                   '--eviction-hard=nodefs.available<1%',
                   '--image-gc-high-threshold=100')

    # the API

    def request(self, path, method='GET', body=None, kind='application/json'):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(
            f'http://127.0.0.1:{PROXY}{path}', data, {'Content-Type': kind},
            method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    def get(self, path):
        """None: not there."""
        try:
            answer = self.request(path)
        except (urllib.error.URLError, OSError):
            return None
        return json.loads(answer) if answer[:1] == b'{' else answer

    def kubectl(self, *args, text=None):
        done = subprocess.run(['kubectl', *args], input=text, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            raise Error(f'kubectl {" ".join(map(str, args))}: {done.stdout}')
        return done.stdout

    def create(self, pod):
        self.request('/api/v1/namespaces/default/pods', 'POST', pod)

    def node(self):
        return self.get(f'/api/v1/nodes/{NODE}') or {'status': {}}

    def ready(self):
        return any(c['type'] == 'Ready' and c['status'] == 'True'
                   for c in self.node()['status'].get('conditions', ()))

    def gpus(self, of='allocatable'):
        """{kind: how many} that the node says it has"""
        found = self.node()['status'].get(of, {})
        return {name.split('/')[1]: int(n) for name, n in found.items()
                if name.startswith('gpemu.io/')}

    def pods(self, label=None, space='default'):
        found = self.get(f'/api/v1/namespaces/{space}/pods' +
                         (f'?labelSelector={label}' if label else ''))
        return found['items'] if found else []
