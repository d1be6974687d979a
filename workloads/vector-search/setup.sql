create extension if not exists vector;
create table item (id int primary key, embedding vector(:dimensions) not null);
create table query (id int primary key, embedding vector(:dimensions) not null, neighbours int[]);

-- A number from -1 to 1: the same on every server.
create function noise(number bigint) returns float8 language sql immutable as $$
    select hashint8(number) / 2147483648.0::float8
$$;

insert into item
select n, (select array_agg(noise(n % :clusters * 1000003::bigint + d) + 0.3 * noise(1000000007 + n * :dimensions::bigint + d)
                            order by d) from generate_series(1, :dimensions) d)::vector
from generate_series(1, :rows) n;
insert into query
select n, (select array_agg(noise(n % :clusters * 1000003::bigint + d) + 0.3 * noise(-1000000007 - n * :dimensions::bigint - d)
                            order by d) from generate_series(1, :dimensions) d)::vector
from generate_series(1, :queries) n;
-- There is no index yet: these are the nearest.
update query set neighbours = array(select id from item order by item.embedding <-> query.embedding limit 10);
