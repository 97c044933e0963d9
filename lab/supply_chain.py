"""What the wheel brings with it: looked up among known vulnerabilities, and listed in a bill of materials.

Run as ``python lab/supply_chain.py audit PIP_AUDIT PYTHON SERVICE`` and ``python lab/supply_chain.py sbom FILE`` by
`make audit` and `make sbom`. An audit passes only when a service has answered for every package but dboost itself: one
that is not reached, or does not know a package, is no good news.

Covers: the verdicts. Does not cover: the environment that is looked at (``Makefile``). It needs only the standard
library, since the environments of the tools hold nothing of ours.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
OURS = "dboost"
SHOWN = 5
"""Names in a message of one line."""


def normal(name: str) -> str:
    """A name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(pyproject: Path = PYPROJECT) -> list[str]:
    """Names of the dependencies that the wheel declares."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return [normal(re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]) for requirement in project["dependencies"]]


def audited(report: Mapping[str, Any], wanted: Sequence[str]) -> list[str]:
    """What speaks against an audit, one line each; nothing where all is well.

    `report`: what pip-audit wrote as JSON. `wanted`: packages that have to be in it.
    """
    found = {normal(one["name"]): one for one in report["dependencies"]}
    lines = []
    missing = sorted(set(wanted) - set(found))
    if missing:
        lines.append(f"not in the environment that was looked at: {_some(missing)}; make it anew")
    unknown = sorted(name for name, one in found.items() if "skip_reason" in one and name != OURS)
    if unknown:
        lines.append(
            f"the service did not answer for {len(unknown)} of {len(found) - (OURS in found)} packages "
            f"({_some(unknown)}), so nothing is known of them; reach it, or name another: make audit AUDIT_SERVICE=osv"
        )
    for name, one in sorted(found.items()):
        for fault in one.get("vulns", []):
            fixed = ", ".join(fault.get("fix_versions", [])) or "no version yet"
            lines.append(f"{name} {one['version']} has {fault['id']}; fixed in {fixed}")
    return lines


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def audit(tool: str, python: str, service: str) -> list[str]:
    """Ask a service about every package of an environment; what speaks against it, one line each."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit.json"
        command = [tool, "--progress-spinner", "off", "--vulnerability-service", service, "--path", packages]
        done = subprocess.run([*command, "--format", "json", "--output", str(out)], capture_output=True, text=True)
        if not out.is_file() or not out.stat().st_size:
            # Its last line is the error; those before it are a traceback.
            why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            return [
                f"the vulnerability service {service!r} gave no answer, so nothing was audited: {why[:200]}; run this "
                "where the service can be reached, or name another: make audit AUDIT_SERVICE=osv"
            ]
        return audited(json.loads(out.read_text(encoding="utf-8")), declared())


def listed(bill: Mapping[str, Any], wanted: Sequence[str]) -> list[str]:
    """What is missing in a bill of materials of CycloneDX, one line each."""
    if bill.get("bomFormat") != "CycloneDX":
        return [f"bomFormat is {bill.get('bomFormat')!r}; expected 'CycloneDX'"]
    parts = {normal(one["name"]): one for one in bill.get("components", [])}
    missing = sorted({*wanted, OURS} - set(parts))
    lines = [f"not in the bill: {_some(missing)}"] if missing else []
    bare = sorted(
        name for name in wanted if name in parts and not (parts[name].get("version") and parts[name].get("purl"))
    )
    return lines + ([f"without version or package URL: {_some(bare)}"] if bare else [])


def version_of(folder: Path) -> str:
    """The version of the wheel in a folder that holds one."""
    (wheel,) = folder.glob(f"{OURS}-*.whl")
    return wheel.name.split("-")[1]


def main(arguments: Sequence[str]) -> int:
    """Print the verdict; 1 where something speaks against it."""
    what, *rest = arguments
    if what == "version":
        print(version_of(Path(rest[0])))
        return 0
    if what == "audit":
        lines, good = audit(*rest), "no known vulnerability in the wheel and what it declares"
    else:
        bill = json.loads(Path(rest[0]).read_text(encoding="utf-8"))
        lines, good = listed(bill, declared()), f"{rest[0]}: {len(bill.get('components', []))} components"
    for line in lines:
        print(f"{what}: {line}", file=sys.stderr)
    if not lines:
        print(good)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
