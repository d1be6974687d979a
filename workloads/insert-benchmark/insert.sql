\set seed random(1, 1000000000000)
insert into sale (register, customer, product, price, note)
select abs(hashint8(:seed::bigint + n)::bigint) % :registers::int,
       abs(hashint8(:seed::bigint - n)::bigint) % :customers::int,
       abs(hashint8(:seed::bigint + 1000003 * n)::bigint) % :products::int,
       abs(hashint8(:seed::bigint - 1000003 * n)::bigint) % :prices::int,
       repeat('a', :note_length::int / 2) || left(md5((:seed::bigint + n)::text), (:note_length::int + 1) / 2)
from generate_series(1, :batch::int) n;
