"""What a container may do, by what the engine says of it and by trying to break out from inside."""

import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scripts.confinement import Limits, User, choose_user, limit
from scripts.containers import CELL as CELL_LABEL
from scripts.containers import OWNER, RUN
from scripts.contract import Data
from scripts.engine import Engine
from scripts.owner import name_owner
from scripts.runs import ROOT, RunFolder
from tests.docker.conftest import CELL, MIB, Enter, Make


@pytest.fixture
def user(engine: Engine) -> User:
    return choose_user(engine.facts)


@pytest.fixture
def running(make: Make, engine: Engine, folder: RunFolder, tmp_path: Path) -> dict[str, Any]:
    """What the engine says of a container while it runs."""
    data = tmp_path / "data"
    data.mkdir()
    cell = replace(CELL, data=Data("toy", "a" * 64, str(data), "made"), cache_state="warm")
    launcher = make("time.sleep(60)", limits=None)

    def launch() -> None:
        with pytest.raises(KeyboardInterrupt):
            launcher.launch(cell, 60)

    thread = threading.Thread(target=launch)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not (found := engine.api.containers(filters={"label": f"{RUN}={folder.path.name}"})):
            assert time.monotonic() < deadline, "no container runs"
            time.sleep(0.02)
        return dict(engine.api.inspect_container(found[0]["Id"]))
    finally:
        launcher.stop()
        thread.join(30)


def test_a_container_is_given_only_what_it_needs(
    running: dict[str, Any], engine: Engine, user: User, tmp_path: Path
) -> None:
    host, config = running["HostConfig"], running["Config"]
    assert config["User"] == f"{user.uid}:{user.gid}"
    assert (host["NetworkMode"], host["IpcMode"], host["Privileged"]) == ("none", "private", False)
    assert (host["PidMode"], host["UTSMode"], host["UsernsMode"]) == ("", "", "")
    assert host["ReadonlyRootfs"] is True
    assert (host["CapDrop"], host["CapAdd"]) == (["ALL"], None)
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Init"] is True
    assert not host["Devices"]
    assert not host["DeviceRequests"]
    assert host["Ulimits"] == [{"Name": "core", "Soft": 0, "Hard": 0}]
    assert host["LogConfig"]["Type"] == "json-file"
    assert int(host["LogConfig"]["Config"]["max-size"]) * int(host["LogConfig"]["Config"]["max-file"]) < 2**24
    allowed = limit(engine.facts)
    assert 0 < host["Memory"] == host["MemorySwap"] == allowed.memory_bytes < engine.facts.memory_bytes
    assert host["ShmSize"] == allowed.shared_memory_bytes
    assert host["PidsLimit"] == allowed.processes
    assert config["Hostname"] == socket.gethostname()
    assert (config["OpenStdin"], config["StdinOnce"], config["Tty"]) == (True, True, False)


def test_a_container_sees_the_sources_and_the_data_read_only_and_little_else(
    running: dict[str, Any], tmp_path: Path
) -> None:
    seen = {mount["Destination"]: mount for mount in running["Mounts"]}
    assert {name for name, mount in seen.items() if not mount["RW"]} == {
        "/rematch/workloads",
        "/rematch/data",
    }
    assert {name for name, mount in seen.items() if mount["RW"]} == {"/rematch/exchange", "/rematch/cache"}
    assert seen["/rematch/workloads"]["Source"] == str(ROOT / "workloads")
    assert seen["/rematch/data"]["Source"] == str(tmp_path / "data")
    assert all(mount["Type"] == "bind" for mount in seen.values())
    assert set(running["HostConfig"]["Tmpfs"]) == {"/rematch/home", "/tmp"}


def test_a_container_says_whose_it_is(running: dict[str, Any], folder: RunFolder) -> None:
    labels = running["Config"]["Labels"]
    assert labels[RUN] == folder.path.name
    assert labels[CELL_LABEL] == f"{CELL.id}.0"
    assert labels[OWNER] == name_owner(os.getpid())


def test_neither_the_image_nor_the_sources_nor_the_data_can_be_written(enter: Enter, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    cell = replace(CELL, data=Data("toy", "a" * 64, str(tmp_path / "data"), "made"))
    places = ["/", "/etc", "/usr/bin", "/opt", "/var/tmp", "/rematch", "/rematch/workloads", "/rematch/data"]
    ended = enter(f"tell(**{{p: attempt(lambda: Path(p, 'new').write_text('')) for p in {places}}})", cell)
    assert set(ended.told) == set(places)
    assert set(ended.told.values()) <= {
        "Read-only file system",
        "Permission denied",
        "No such file or directory",
    }
    assert ended.told["/rematch/workloads"] == ended.told["/rematch/data"] == "Read-only file system"
    ended = enter("tell(it=attempt(Path('/rematch/workloads/__main__.py').unlink))")
    assert ended.told["it"] == "Read-only file system"


def test_no_socket_leads_anywhere(enter: Enter) -> None:
    """Neither out, nor to the host's own services, nor to the engine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended = enter(
            f"""
def connect(host, port):
    with socket.socket() as one:
        one.settimeout(5)
        one.connect((host, port))
tell(interfaces=[name for _, name in socket.if_nameindex() if name not in ("tunl0", "sit0", "ip6tnl0")],
    out=attempt(lambda: connect("192.0.2.1", 80)), bridge=attempt(lambda: connect("172.17.0.1", 22)),
    host=attempt(lambda: connect("127.0.0.1", {port})), engine=Path("/var/run/docker.sock").exists(),
    raw=attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    packet=attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
"""
        )
    told = ended.told
    assert told["interfaces"] == ["lo"]
    assert (told["out"], told["bridge"]) == ("Network is unreachable",) * 2
    assert told["host"] == "Connection refused"
    assert (told["raw"], told["packet"]) == ("Operation not permitted",) * 2
    assert told["engine"] is False


def test_no_privilege_is_had_or_can_be_gained(enter: Enter, user: User) -> None:
    ended = enter(
        """
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *given):
    if getattr(libc, name)(*given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
tell(ids=[os.getuid(), os.geteuid(), os.getgid()],
    capabilities=[status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    no_new=status["NoNewPrivs"].strip(), seccomp=status["Seccomp"].strip(),
    gained=dict(
        user=attempt(lambda: os.setuid(1)), group=attempt(lambda: os.setgid(1)),
        root=attempt(lambda: os.chroot("/tmp")), owner=attempt(lambda: os.chown("/rematch/exchange", 1, 1)),
        mount=attempt(lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None)),
        space=attempt(lambda: call("unshare", 0x10000000)),
        name=attempt(lambda: socket.sethostname("other")),
        device=attempt(lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)))))
"""
    )
    told = ended.told
    assert told["ids"] == [user.uid, user.uid, user.gid]
    assert set(told["capabilities"]) == {"0" * 16}
    assert (told["no_new"], told["seccomp"]) == ("1", "2")
    assert set(told["gained"].values()) == {"Operation not permitted"}


@pytest.mark.parametrize(("place", "size_mib"), [("/dev/shm", 64), ("/tmp", 32), ("/rematch/home", 32)])
def test_no_more_files_are_held_in_memory_than_allowed(enter: Enter, place: str, size_mib: int) -> None:
    """C4"""
    ended = enter(
        f"""
written = 0
def fill():
    global written
    with open("{place}/much", "wb", buffering=0) as file:
        while written < 512:
            file.write(bytes({MIB}))
            written += 1
tell(end=attempt(fill), written=written)
"""
    )
    assert ended.told == {"end": "No space left on device", "written": size_mib}


def test_forking_without_end_ends_at_the_limit_and_leaves_the_host_usable(
    enter: Enter, limits: Limits, engine: Engine
) -> None:
    few = Limits(limits.memory_bytes, limits.shared_memory_bytes, limits.scratch_bytes, processes=64)
    bomb = """
print("begun", flush=True)
while True:
    try:
        os.fork()
    except OSError as error:
        print("TOLD", json.dumps(error.strerror), flush=True)
        time.sleep(0.1)
"""
    ended = enter(bomb, limits=few, limit_s=3)
    assert ended.cause[0] == "time-limit"
    assert "Resource temporarily unavailable" in ended.log
    assert subprocess.run(["true"], check=True).returncode == 0
    assert not engine.api.containers(all=True, filters={"label": OWNER})


def test_memory_without_end_is_a_failed_row_that_says_so(enter: Enter, limits: Limits) -> None:
    little = Limits(128 * MIB, limits.shared_memory_bytes, limits.scratch_bytes, limits.processes)
    ended = enter(f"held = []\nwhile True: held.append(bytearray({MIB}))", limits=little)
    assert ended.result.status == "failed"
    assert ended.cause[0] == "out-of-memory"


def test_a_child_that_is_killed_for_memory_explains_its_parents_exception(
    enter: Enter, limits: Limits
) -> None:
    """As where a loader's worker dies: its parent only sees that it is gone."""
    little = Limits(128 * MIB, limits.shared_memory_bytes, limits.scratch_bytes, limits.processes)
    ended = enter(
        f"""
child = os.fork()
if child == 0:
    held = []
    while True: held.append(bytearray({MIB}))
os.waitpid(child, 0)
cause = dict(kind="exception", message="a worker exited unexpectedly")
failed = dict(schema=1, cell=cell, status="failed", started="", duration_s=1, cause=cause)
result.write_text(json.dumps(failed))
""",
        limits=little,
    )
    assert ended.cause[0] == "out-of-memory"
    assert ended.cause[1].startswith("a worker exited unexpectedly (")


def test_a_user_that_the_image_does_not_know_has_a_name_a_home_and_caches_that_can_hold_programs(
    enter: Enter, user: User
) -> None:
    ended = enter(
        """
import getpass, tempfile, shutil
places = [Path.home(), Path(tempfile.gettempdir()), Path(os.environ["XDG_CACHE_HOME"]), Path(cell["cache"])]
def run(place):
    place.mkdir(parents=True, exist_ok=True)
    program = shutil.copy(shutil.which("true"), place / "made")
    return subprocess.run([program]).returncode
tell(name=getpass.getuser(), home=os.path.expanduser("~"), found=os.environ["HOME"],
    ran={str(place): attempt(lambda: run(place)) for place in places},
    left=[str(place) for place in places if place.stat().st_uid != os.getuid()])
"""
    )
    told = ended.told
    assert told["name"] == "rematch"
    assert told["home"] == told["found"] == "/rematch/home"
    assert len(told["ran"]) == 4
    assert set(told["ran"].values()) == {"0"}
    assert told["left"] == []


def test_a_container_gets_the_users_variables_that_change_figures_and_no_others(
    enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECRET_TOKEN", "HTTP_PROXY", "PYTHONPATH", "LD_LIBRARY_PATH", "TORCH_HOME", "LANG"):
        monkeypatch.setenv(name, "of the host")
    monkeypatch.setenv("OMP_SCHEDULE", "static")
    seen = enter("tell(**os.environ)").told
    assert "of the host" not in seen.values()
    assert seen["OMP_SCHEDULE"] == "static"
    assert seen["PATH"] != os.environ["PATH"]
    assert seen["PYTHONNOUSERSITE"] == "1"
    assert 0 <= int(seen["PYTHONHASHSEED"]) < 2**32


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        ("answer(); result.rename('/rematch/exchange/own'); result.symlink_to('own')", "a link"),
        ("result.symlink_to('/etc/shadow')", "a link"),
        ("os.mkfifo(result)", "not a regular file"),
        ("result.mkdir()", "not a regular file"),
        ("result.touch(); os.truncate(result, 10**12)", "larger than any result"),
        (
            "cell['data'] = dict(name='x', sha256='a' * 64, folder='/', nature=''); answer()",
            "its data differs",
        ),
        ("cell['cache'] = '/elsewhere'; answer()", "its cache differs"),
        ("answer(); result.write_text(result.read_text()[:500])", "truncated"),
    ],
)
def test_what_a_container_leaves_instead_of_a_result_is_named_and_harms_nothing(
    enter: Enter, make_it: str, words: str
) -> None:
    ended = enter(make_it)
    assert ended.cause[0] == "result", ended.log
    assert words in ended.cause[1]


def test_a_result_belongs_to_the_caller(enter: Enter, folder: RunFolder, user: User) -> None:
    """C5"""
    ended = enter("answer(); tell(uid=os.getuid())")
    assert ended.told["uid"] == user.uid
    assert ended.result.status == "measured"
    written = folder.result(CELL.id, 0).stat()
    assert (written.st_uid, written.st_gid, written.st_mode & 0o777) == (os.getuid(), os.getgid(), 0o644)
    assert json.loads(folder.result(CELL.id, 0).read_bytes())["cell"]["id"] == CELL.id
