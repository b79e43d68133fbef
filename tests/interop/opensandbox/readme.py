# SPDX-License-Identifier: Apache-2.0
"""The Python example of README.md works as printed: readme.py DIRECTORY:DIRECTORY README

The directories have the SDK and what it needs. The server is named by OPEN_SANDBOX_DOMAIN, as for a reader
of the README. Speaks TAP.
"""

import os
import re
import subprocess
import sys

directories, readme = sys.argv[1:3]
with open(readme, encoding="utf-8") as f:
    (example,) = re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)
p = subprocess.run([sys.executable, "-c", example], text=True, capture_output=True, check=False,
                   env={**os.environ, "PYTHONPATH": directories})
print("1..1")
if (p.returncode, p.stdout) == (0, "45\n"):
    print("ok 1 - the Python example of the README")
else:
    print("not ok 1 - the Python example of the README", *(p.stdout + p.stderr).splitlines(), sep="\n# ")
    sys.exit(1)
