"""Runs workloads on the GPU, each in a process of its own.

usage: child.py JOBS     (one line of JSON for each job of that file)
"""

import importlib
import json
import os
import sys
import traceback


def main():
    jobs = json.loads(open(sys.argv[1], encoding="utf-8").read())
    # A fork of a process that has imported everything, and not touched the GPU, starts in no time.
    functions = [function(job["workload"]) for job in jobs]
    for job, call in zip(jobs, functions):
        pid, answer = in_a_fork(call, job["parameters"])
        print(json.dumps({"key": job["key"], "pid": pid} | answer), flush=True)


def function(name):
    module, attribute = name.rsplit(".", 1)
    return getattr(importlib.import_module(f"workloads.{module}"), attribute)


def in_a_fork(call, parameters):
    end, start = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end)
        try:
            answer = {"figures": call(**parameters)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        with open(start, "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(start)
    with open(end, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return pid, json.loads(said) if said else {"error": "the process died"}


if __name__ == "__main__":
    main()
