# As much of PostgreSQL as a server needs. pgdyno runs it in a directory that was configured, once for `all` and then for
# `install`: with everything up to date, nothing is made twice at the same time while installing in parallel.

backend = src/backend

# What these need of what they share is there for all others once they are made, each after the one before.
libpq  = src/interfaces/libpq
initdb = src/bin/initdb

# Not every major has each.
others := $(wildcard \
	src/backend/utils/mb/conversion_procs src/backend/snowball src/timezone src/pl/plpgsql \
	src/backend/replication/libpqwalreceiver src/backend/replication/pgoutput \
	src/bin/pg_ctl src/bin/pg_controldata src/bin/pg_config \
	contrib/pg_buffercache contrib/pg_prewarm contrib/pg_stat_statements)

directories := $(backend) $(libpq) $(initdb) $(others)

# From 11 on, two rules of the backend make these, each with a make of its own: in parallel they would meet.
headers := $(shell grep -o '^generated-headers:' $(backend)/Makefile)

.PHONY: all install headers $(directories:=.all) $(directories:=.install)

all: $(directories:=.all)
install: $(directories:=.install)

headers:
	$(if $(headers),$(MAKE) -C $(backend) generated-headers)

$(backend).all: headers
$(libpq).all: $(backend).all
$(initdb).all: $(libpq).all
$(others:=.all): $(initdb).all

$(directories:=.all): %.all:
	$(MAKE) -C $* all

$(directories:=.install): %.install:
	$(MAKE) -C $* install
