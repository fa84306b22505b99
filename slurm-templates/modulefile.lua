-- outerloop-hpc for Lmod: install as <modulefiles>/outerloop-hpc/<version>.lua
--
--   @PREFIX@   where outerloop-hpc is installed (a virtual environment: @PREFIX@/bin/outerloop-hpc exists)
--   @VERSION@  what `outerloop-hpc --version` prints
--
-- The site's settings belong into /etc/outerloop-hpc/config.toml, which every user's and project's settings override.
-- Where /etc cannot be written, name a file here instead; it then stands in the place of the project's outerloop.toml:
--   setenv("OUTERLOOP_CONFIG", "@PREFIX@/etc/outerloop.toml")
help([[
outerloop-hpc turns work orders into Slurm jobs, and job results into evidence.
Start with `outerloop-hpc doctor`; every command's --help begins with an example.
]])
whatis("Name: outerloop-hpc")
whatis("Version: @VERSION@")
whatis("Description: a reconciler and an evidence layer over Slurm and submitit")

-- Only the program, not the virtual environment's bin folder: its python must not hide the user's.
prepend_path("PATH", "@PREFIX@/share/outerloop-hpc/bin")
prepend_path("MANPATH", "@PREFIX@/share/man")

-- Once, by whoever installs the module:
--   mkdir -p @PREFIX@/share/outerloop-hpc/bin
--   ln -s ../../../bin/outerloop-hpc @PREFIX@/share/outerloop-hpc/bin/outerloop-hpc
