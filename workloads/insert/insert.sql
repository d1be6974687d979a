\set device random(1, :devices)
insert into measurement
select clock_timestamp(), 1 + (:device::int + n) % :devices::int, n, repeat('x', 40)
from generate_series(1, :batch::int) n;
