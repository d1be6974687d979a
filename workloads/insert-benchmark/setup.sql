-- Sales of a chain of shops. Other sessions take ids in blocks, as when many clients insert.
create table sale (
    id        bigserial primary key,
    at        timestamptz not null default statement_timestamp(),
    register  int not null,
    customer  int not null,
    product   int not null,
    price     int not null,
    note      varchar(4000) not null
);

alter sequence sale_id_seq cache 1000;
