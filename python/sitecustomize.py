"""Runs when a Python child of vramfit's virtual GPU starts: it waits for `import torch`.

The interpreter looks for a module of this name on its path. Another one that this hides, the user's or
the system's, is run as if this were not there. Nothing is imported that the program does not import
itself, except the parts of the standard library that every import uses.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _AfterImport:
    """A finder that finds nothing itself, but has something done after certain modules are imported."""

    def __init__(self, actions):
        self._actions = actions

    def find_spec(self, name, path=None, target=None):
        action = self._actions.pop(name, None)
        if action is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            execute = spec.loader.exec_module

            def execute_then_act(module):
                execute(module)
                action()

            spec.loader.exec_module = execute_then_act
        return spec


def _shadow():
    """Our package, which the program's own path does not lead to."""
    name = "vramfit_shadow"
    if name not in sys.modules:
        folder = os.path.join(_HERE, name)
        spec = importlib.util.spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def _run_hidden():
    """Runs the `sitecustomize` that would have run without this one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.meta_path.insert(
    0,
    _AfterImport(
        {
            "torch": lambda: _shadow().after_torch(),
            "torchvision": lambda: _shadow().after_torchvision(),
        }
    ),
)
_run_hidden()
