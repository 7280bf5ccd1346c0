"""Real hosts on one machine: Debian trees booted by systemd-nspawn, each with a network and cgroups of its own.

    python -m hack.hosts            # builds what is missing, then says what it has and how to use it

A host is an overlay over one cached Debian tree (``tree``), a network namespace on a bridge (``network``), cgroups of
its own (``cgroups``) and a booted systemd (``guests``). ``lab`` puts them together and keeps them in a folder, so that
hosts outlive the process that made them; ``Lab.clean`` removes all of them. Needs root, Linux and Debian's packages;
``parts.missing`` says which are missing.
"""
