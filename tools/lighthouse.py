"""Report Lighthouse's scores of built pages, as a phone and as a desktop load them.

    python -m tools.lighthouse                    the first page and the heaviest three
    python -m tools.lighthouse chapters/gan.html  one of them

Lighthouse comes from the npm registry, so this needs Node 18.16 or newer, and Chromium.
The pages are served from this machine and compressed, as web hosts do. `<` marks a
score below its goal. A busy machine costs points in the first column: take a quiet one.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BOOK = Path(__file__).resolve().parents[1] / "_build" / "html"
LIGHTHOUSE = "lighthouse@12.8.2"
BROWSER = "--headless=new --no-sandbox --disable-gpu --disable-background-networking"
CATEGORIES = {
    "performance": {"phone": 85, "desktop": 95},
    "accessibility": {"phone": 100, "desktop": 100},
    "best-practices": {"phone": 100, "desktop": 100},
    "seo": {"phone": 100, "desktop": 100},
}
AUDITS = {
    "largest-contentful-paint": "LCP",
    "total-blocking-time": "TBT",
    "cumulative-layout-shift": "CLS",
    "total-byte-weight": "bytes",
}
MOST_SHIFT = 0.1


class Compressed(SimpleHTTPRequestHandler):
    """Serves files as a web host does."""

    def do_GET(self) -> None:  # noqa: N802, the name that the base class asks for
        """Send a file, text compressed."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        body, kind = path.read_bytes(), self.guess_type(str(path))
        self.send_response(200)
        if kind.startswith("text/") or kind.endswith(("javascript", "svg+xml")):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Measure and print, a line a page and form."""
    if not (BOOK / "index.html").exists():
        sys.exit("the book is not built: run `make book`")
    if not shutil.which("npx"):
        sys.exit("Lighthouse needs Node: there is no npx here")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        sys.exit("no browser to measure with: install chromium or name it in CHROMIUM")
    handler = partial(Compressed, directory=BOOK)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in sys.argv[1:] or heaviest(BOOK):
            for form in ("phone", "desktop"):
                address = f"http://127.0.0.1:{server.server_port}/{page}"
                result = measure(address, form, chromium)
                print(f"{page:34} {form:8} {summary(result, form)}", flush=True)
        server.shutdown()


def heaviest(book: Path, count: int = 3) -> list[str]:
    """Return the first page and those with the most HTML."""
    pages = sorted(book.glob("*/*.html"), key=lambda page: -page.stat().st_size)
    names = [str(page.relative_to(book)) for page in pages[:count]]
    return ["chapters/index.html", *names]


def measure(address: str, form: str, chromium: str) -> dict:
    """Return what Lighthouse reports."""
    command = ["npx", "--yes", LIGHTHOUSE, address, "--quiet", "--output=json"]
    command += [f"--chrome-flags={BROWSER}"]
    command += ["--preset=desktop"] if form == "desktop" else []
    settings = dict(os.environ) | {"CHROME_PATH": chromium}
    done = subprocess.run(command, env=settings, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def summary(result: dict, form: str) -> str:
    """Return a line with the scores, the marks and what lies behind the first."""
    parts = []
    for name, goals in CATEGORIES.items():
        score = round(100 * (result["categories"][name]["score"] or 0))
        parts.append(f"{name} {score}{'<' if score < goals[form] else ' '}")
    for name, short in AUDITS.items():
        audit = result["audits"][name]
        shifts = name == "cumulative-layout-shift"
        mark = "<" if shifts and audit["numericValue"] >= MOST_SHIFT else ""
        value = audit["displayValue"].removeprefix("Total size was ")
        parts.append(f"{short} {value}{mark}")
    return "  ".join(parts)


if __name__ == "__main__":
    main()
