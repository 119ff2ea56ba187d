"""What a finder tried: each peer's hooks tell it, and it writes that down for the benchmark."""

import json
import pathlib
import time


class Trials:
    def __init__(self):
        self.begun = time.perf_counter()
        # Each trial's batch size, and whether it went through.
        self.tried = []

    def start(self, size):
        self.tried.append({"batch": size, "ran": False})

    def went_through(self):
        self.tried[-1]["ran"] = True

    def write(self, path, answer):
        found = {
            "answer": answer,
            "tried": self.tried,
            "search_seconds": time.perf_counter() - self.begun,
        }
        pathlib.Path(path).write_text(json.dumps(found))
