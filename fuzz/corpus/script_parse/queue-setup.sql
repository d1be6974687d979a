create table job (id bigserial primary key, added timestamptz not null default clock_timestamp(), task text not null);
insert into job (task) select repeat('x', 100) from generate_series(1, :jobs);
