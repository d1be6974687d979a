create table account (id int primary key, balance bigint not null, note text not null) with (fillfactor = 90);
insert into account select id, 0, repeat('x', 80) from generate_series(1, :rows) id;
