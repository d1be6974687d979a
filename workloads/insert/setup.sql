create table measurement (
    at      timestamptz not null,
    device  int not null,
    value   double precision not null,
    note    text not null
);

-- A row every 10 ms, up to the moment when the table is made.
insert into measurement
select statement_timestamp() - (:rows - n) * interval '10 ms', 1 + n % :devices, n, repeat('x', 40)
from generate_series(1, :rows) n;

create index measurement_at on measurement (at);
create index measurement_device_at on measurement (device, at);
