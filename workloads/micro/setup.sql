-- The data of all workloads micro-*: one set, which each of them uses a part of.
do $setup$
begin
    if :rows < 20000 then
        raise exception 'the parameter rows is :rows; at least 20000 are needed';
    end if;
end
$setup$;

-- Read: by primary key, by a secondary index, in ranges.
create table item (
    id      int not null,
    code    int not null,       -- another permutation of the keys
    kind    int not null,       -- one of a hundred
    price   int not null,
    label   text not null
);
insert into item
select id, 1 + (id::bigint * 7919 % :rows)::int, id * 31 % 100, id * 48271::bigint % 9973, md5(id::text)
from generate_series(1, :rows) id;
alter table item add primary key (id);
create index item_code on item (code);
create index item_code_price on item (code, price);

-- Joined with it: two rows for each of half of the items.
create table part (id int not null, item int not null, number int not null);
insert into part select id, 1 + (id::bigint * 104729 % (:rows / 2))::int, id % 7 from generate_series(1, :rows) id;
alter table part add primary key (id);
create index part_item on part (item);

-- Updated: room on each page for the next versions of rows.
create table account (
    id      int not null,
    balance bigint not null,
    branch  int not null,
    note    text not null
) with (fillfactor = 70);
insert into account select id, 0, id % 1000, md5(id::text) from generate_series(1, :rows) id;
alter table account add primary key (id);
create index account_branch on account (branch);

-- Added to and removed from: keys above those of the initial rows belong to a client each.
create table entry (id bigint not null, at timestamptz not null, note text not null);
insert into entry select id, statement_timestamp(), md5(id::text) from generate_series(1, :rows) id;
alter table entry add primary key (id);

-- The same with a foreign key.
create table child (id bigint not null, item int not null);
insert into child select id, id from generate_series(1, :rows / 10) id;
alter table child add primary key (id);
alter table child add foreign key (item) references item (id);

-- Each update of a row runs a trigger.
create table watched (id int not null, value int not null, changes int not null) with (fillfactor = 50);
insert into watched select id, 0, 0 from generate_series(1, :rows / 10) id;
alter table watched add primary key (id);
create function count_change() returns trigger language plpgsql as $$
begin
    new.changes := old.changes + 1;
    return new;
end
$$;
create trigger watched_update before update on watched for each row execute procedure count_change();

create table document (id int not null, body jsonb not null, tags int[] not null) with (fillfactor = 70);
insert into document
select id, jsonb_build_object('name', md5(id::text), 'count', 0, 'address',
                              jsonb_build_object('city', 'city ' || id % 100, 'lines', jsonb_build_array(id, id + 1))),
       array[id % 1000, id % 997, id % 991, id % 983]
from generate_series(1, :rows / 5) id;
alter table document add primary key (id);
create index document_tags on document using gin (tags);

create table phrase (id int not null, words text not null);
insert into phrase select id, md5(id::text) || ' ' || md5('phrase' || id) from generate_series(1, :rows / 5) id;
alter table phrase add primary key (id);
create index phrase_words on phrase (words text_pattern_ops);
-- The index by trigrams needs the extension pg_trgm, which servers built from source may lack.
do $setup$
begin
    if exists (select from pg_available_extensions where name = 'pg_trgm') then
        create extension pg_trgm;
        create index phrase_trigrams on phrase using gin (words gin_trgm_ops);
    end if;
end
$setup$;

-- 16 kB a row, which do not compress and are out of line.
create table large (id int not null, data text not null);
alter table large alter data set storage external;
insert into large
select id, (select string_agg(md5(id || '/' || part), '') from generate_series(1, 512) part)
from generate_series(1, 200) id;
alter table large add primary key (id);

-- Partitions by range came with PostgreSQL 10, keys of their parent with 11.
do $setup$
begin
    if current_setting('server_version_num')::int >= 110000 then
        execute 'create table measure (at int not null, value int not null, primary key (at)) partition by range (at)';
        for part in 0..49 loop
            execute format('create table measure_%s partition of measure for values from (%s) to (%s)',
                           part, part * 1000, part * 1000 + 1000);
        end loop;
        execute 'insert into measure select at, at % 97 from generate_series(0, 49999) at';
    end if;
end
$setup$;

create function sum_in_sql(first int, number int) returns bigint language sql stable as $$
    select sum(price) from item where id between first and first + number - 1
$$;
create function sum_in_plpgsql(first int, number int) returns bigint language plpgsql stable as $$
declare
    total bigint := 0;
begin
    for n in 1..number loop
        total := total + (first * n) % 97;
    end loop;
    return total;
end
$$;

create function look_up(id int) returns text language plpgsql stable as $$
declare
    found text;
begin
    execute 'select label from item where id = ' || id into found;
    return found;
end
$$;

-- What is copied from a file is in the server's directory, as the data are; not every role may write it.
do $setup$
begin
    execute format('copy (select id, now(), md5(id::text) from generate_series(1, 1000) id) to %L',
                   current_setting('data_directory') || '/micro-copy');
exception when insufficient_privilege then
    raise notice 'micro-copy can''t run: the role may not write files of the server';
end
$setup$;
create table landing (id bigint not null, at timestamptz not null, note text not null);
