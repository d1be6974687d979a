create table counter (id int primary key, n bigint not null) with (fillfactor = 50);
insert into counter select id, 0 from generate_series(1, :rows) id;
