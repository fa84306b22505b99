"""An agent that says its order's texts wherever an agent, or what it wrote, can say something.

``TEXTS`` is put in front: the file with the texts of every order. So is what agents share, see ``lane``.
"""

# mypy: ignore-errors
# ruff: noqa: F821 - only a part of a program
import re

brief = Path(os.environ["OUTERLOOP_BRIEF"]).read_text()
number = int(re.search(r"^## The order \((\d+),", brief, re.MULTILINE)[1])
pack = json.loads(Path(TEXTS).read_text())[number - 1]
text = "\n\n".join(pack)
raw = text.encode("utf-8", "surrogatepass") + b"\xff\xfe\n"
for stream in (sys.stdout, sys.stderr):
    stream.buffer.write(raw)
    stream.flush()

checks = WORK / "checks"
checks.mkdir()
(checks / "words").write_bytes(raw)
names = ["".join(c for c in one if c.isprintable() and c not in "/:\\")[:40].rstrip(". ") for one in pack]
# As many paths for every order, so that posts differ in nothing but them.
names = [*dict.fromkeys(filter(None, names)), *(f"another {count}" for count in range(8))][:8]
for name in names:
    (checks / name).write_bytes(raw)
SAY = """\
import json, os, sys
from pathlib import Path
said = Path("checks/words").read_bytes()
for stream in (sys.stdout, sys.stderr):
    stream.buffer.write(said)
    stream.flush()
"""
SCORE = """\
name = said.decode(errors="replace")[:120]
print(json.dumps({"score": 1.0 + int(os.environ["SEED"]) % 2, name: 2.0}))
"""
(checks / "validate.py").write_text(SAY)
(WORK / "evaluate.py").write_text(SAY + SCORE)

way = WAYS[number % len(WAYS)]
if way == "out-of-scope":
    for name in names:
        (WORK / f"x{name}").write_bytes(raw)
elif way == "no validation":
    (checks / "validate.py").write_text(SAY + "sys.exit(1)\n")
elif way == "no number":
    (WORK / "evaluate.py").write_text(SAY + "sys.exit(1)\n")
elif way == "answered":
    end(10, "no-change", text)
end(0, "done", text, turns=3, cost_usd=0.25)
