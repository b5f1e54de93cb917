"""PyTorch's nets for the speed table: one process per net, which compiles while other steps run.

Compiling ResNet-50 needs a minute or two of one core, so all processes start after the first step of
check.py. If a process is not ready when its figure is due, one that does not compile replaces it.
"""

import contextlib
import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time

import children

PROGRAM = pathlib.Path(__file__).resolve().with_name("peer.py")
COMPILE_THREADS = 4
PATIENCE = 20  # seconds to wait for an answer, in addition to the training
QUIET_SECONDS = 40  # to wait while cuDNN chooses algorithms


class Peer:
    """One process. After ready(), `setting` says how it computes, or why it does not."""

    def __init__(self, bundle, row, compiled=True):
        self.row, self.bundle = row, bundle
        self.setting, self.versions, self.process = "", {}, None
        how = row.compile if compiled else "no"
        self.command = [bundle.python, "-B", PROGRAM, f"--net={row.net}", f"--mode={row.mode}",
                        f"--batch={bundle.small(row.batch, 2)}",
                        f"--compile={bundle.small(how, 'aot_eager' if compiled else 'no')}",
                        f"--device={bundle.small('cuda', 'cpu')}"]
        self.log = bundle.folder / f"peer_{row.net}_{row.mode}.log"
        self.lines, self.done = queue.Queue(), False

    def start(self):
        with self.log.open("w", encoding="utf-8") as log:
            self.process = children.start(
                self.command, outlives_step=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS":
                                 str(COMPILE_THREADS), "OMP_NUM_THREADS": "4"})
        threading.Thread(target=self.read, args=(self.process,), daemon=True).start()

    def read(self, process):
        with process.stdout:
            for line in process.stdout:
                self.lines.put(line)
        self.lines.put(None)

    def answer(self, seconds):
        """Returns its next answer, or None if it has ended. Throws queue.Empty after `seconds`."""
        line = self.lines.get(timeout=max(0.05, seconds))
        return None if line is None else json.loads(line)

    def ready(self, seconds):
        """Waits up to `seconds` until it is ready. Returns whether it is; if it ended, `setting`
        says why."""
        if self.done:
            return self.process is not None
        try:
            words = self.answer(seconds)
        except queue.Empty:
            return False
        self.done = True
        if words is None:
            last = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            self.setting = f"no PyTorch: {' '.join(last)[:300]}"
            self.end()
            return False
        self.setting = words["setting"]
        self.versions = {"torch": words["torch"], "cudnn": words["cudnn"]}
        return True

    def quiet(self):
        """Tells the process that no other program uses the GPU from now on."""
        found = self.ask("quiet", QUIET_SECONDS)
        self.setting = found.get("setting", self.setting) if found else self.setting

    def sample(self, seconds):
        """Returns {"ms": ..., ...}, or None if it failed."""
        return self.ask(seconds, 10 * seconds + PATIENCE)

    def ask(self, line, seconds):
        """Returns the answer, or ends the process and returns None if there is none."""
        if self.process is None:
            return None
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
            found = self.answer(seconds)
        except (OSError, queue.Empty):
            found = None
        if found is None:
            self.setting += " (ended on the way)"
            self.end()
        return found

    def signal(self, number):
        """Sends a signal to the process and its children, if it runs."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def end(self):
        if self.process is not None:
            children.end(self.process)
            self.process.stdin.close()
        self.process = None


class Peers:
    """All processes. Starts them in order, as many at once as the cores can compile for."""

    def __init__(self, bundle, rows):
        self.bundle = bundle
        self.peers = {row.key: Peer(bundle, row) for row in rows}
        self.waiting = list(self.peers.values())
        self.most = max(1, (os.cpu_count() or 2) // 2)
        self.go_on()

    def go_on(self):
        """Continues the paused processes and starts more of them. Called between steps."""
        for peer in self.peers.values():
            peer.signal(signal.SIGCONT)
        under_way = [peer for peer in self.peers.values()
                     if peer not in self.waiting and not peer.done and not peer.ready(0)]
        while self.waiting and len(under_way) < self.most:
            peer = self.waiting.pop(0)
            peer.start()
            under_way.append(peer)

    def settle(self, keys, seconds):
        """Stops all compilation until go_on(). Peers of `keys` that are not ready after `seconds`
        are replaced by peers that do not compile; the other peers that are not ready pause."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.go_on()
            late = [self.peers[key] for key in keys if not self.peers[key].done]
            if not late:
                break
            if late[0] not in self.waiting:
                late[0].ready(min(1, end - time.monotonic()))
        for key, peer in self.peers.items():
            if key not in keys and not peer.done:
                peer.signal(signal.SIGSTOP)
        late = [key for key in keys if not self.peers[key].done]
        for key in late:
            if self.peers[key] in self.waiting:
                self.waiting.remove(self.peers[key])
            self.peers[key].end()
            self.peers[key] = Peer(self.bundle, self.peers[key].row, compiled=False)
            self.peers[key].start()
        for key in late:
            self.peers[key].ready(30)

    def close(self):
        for peer in self.peers.values():
            peer.end()
