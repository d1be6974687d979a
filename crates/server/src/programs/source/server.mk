# The parts of PostgreSQL that a server needs. pgdyno runs this in a configured directory, first for `all`, then for
# `install`: with everything up to date, a parallel install builds nothing twice at the same time.

backend = src/backend

# Built one after the other before all others, which share prerequisites with them.
libpq  = src/interfaces/libpq
initdb = src/bin/initdb

# Not in every major.
others := $(wildcard \
	src/backend/utils/mb/conversion_procs src/backend/snowball src/timezone src/pl/plpgsql \
	src/backend/replication/libpqwalreceiver src/backend/replication/pgoutput \
	src/bin/pg_ctl src/bin/pg_controldata src/bin/pg_config \
	contrib/pg_buffercache contrib/pg_prewarm contrib/pg_stat_statements)

# From 17 on, this installs postgres.bki; before, the backend does.
catalog := $(patsubst %/Makefile,%,$(shell grep -ls '^install:' src/include/catalog/Makefile))

directories := $(backend) $(libpq) $(initdb) $(catalog) $(others)

# From 11 on, two rules of the backend generate these, each by its own make: in parallel they would collide.
headers := $(shell grep -o '^generated-headers:' $(backend)/Makefile)

pgxs := $(wildcard src/makefiles/Makefile)

.PHONY: all install pgxs headers header-directories $(directories:=.all) $(directories:=.install)

all: $(directories:=.all)
install: $(directories:=.install) pgxs

headers:
	$(if $(headers),$(MAKE) -C $(backend) generated-headers)

$(backend).all: headers
$(libpq).all: $(backend).all
$(initdb).all: $(libpq).all
$(catalog:=.all) $(others:=.all): $(initdb).all

$(directories:=.all): %.all:
	$(MAKE) -C $* all

$(directories:=.install): %.install:
	$(MAKE) -C $* install

# Headers and makefiles, to build extensions with.
pgxs: $(directories:=.install)
	$(if $(pgxs),$(MAKE) -C src/include install)
	$(if $(pgxs),$(MAKE) -C src/makefiles install)
	$(if $(pgxs),$(MAKE) -C config install)
	$(if $(pgxs),$(MAKE) -C src install-local)

# It installs headers, too, into directories that it does not create.
$(catalog:=.install): header-directories

header-directories:
	$(MAKE) -C src/include installdirs
