# SPDX-License-Identifier: MIT
"""Container images without a network or a registry: archives as `docker save`
writes them, with one layer."""
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path


def libraries(program):
    """The files that the dynamic linker opens for a program."""
    out = subprocess.run(['ldd', program], capture_output=True, text=True)
    return re.findall(r'(/\S+) \(0x', out.stdout)


def copy(root, path):
    """A file of this system, at the same place below a root."""
    to = root / str(path).lstrip('/')
    if not to.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)


def gpemu_root(build, root):
    """What `meson install` installs from a build folder, and what that needs."""
    subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet',
                    '--destdir', root], check=True)
    programs = [p for p in root.glob('**/bin/gpemu*') if p.is_file()]
    if not programs:
        raise SystemExit(f'{build}: meson installs no programs')
    (root / 'tmp').mkdir()
    copy(root, '/usr/bin/mkdir')  # of the manifest's init container
    for program in [*programs, Path('/usr/bin/mkdir')]:
        for library in libraries(program):
            copy(root, library)
    return programs[0].parent.relative_to(root)


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def archive(root, name, config, to):
    """An image of all below a root."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode='w') as tar:
        tar.add(root, arcname='.')
    layer = layer.getvalue()
    image = {
        'architecture': 'amd64', 'os': 'linux', 'config': config,
        'rootfs': {'type': 'layers', 'diff_ids':
                   ['sha256:' + hashlib.sha256(layer).hexdigest()]},
    }
    manifest = [{'Config': 'config.json', 'RepoTags': [name],
                 'Layers': ['layer.tar']}]
    with tarfile.open(to, 'w') as tar:
        add(tar, 'layer.tar', layer)
        add(tar, 'config.json', json.dumps(image).encode())
        add(tar, 'manifest.json', json.dumps(manifest).encode())


def gpemu(build, work):
    """The image of the manifests, from a build folder: its archive."""
    root = work / 'image'
    programs = gpemu_root(build, root)
    archive(root, 'localhost/gpemu:latest',
            {'Env': [f'PATH=/{programs}:/usr/bin']}, work / 'gpemu.tar')
    shutil.rmtree(root)
    return work / 'gpemu.tar'


def pause(program, work):
    """The image of the process that holds a pod's namespaces."""
    root = work / 'image'
    root.mkdir()
    shutil.copy(program, root / 'pause')
    archive(root, 'localhost/pause:1', {'Entrypoint': ['/pause']},
            work / 'pause.tar')
    shutil.rmtree(root)
    return work / 'pause.tar'
