\set year random(1993, 1997)
\set percent random(2, 9)
\set quantity random(24, 25)
select /* discount-forecast */
       sum(price * discount) as lost
from order_line
where shipped between make_date(:year::int, 1, 1) and make_date(:year::int, 12, 31)
  and discount between (:percent::int - 1) / 100.0 and (:percent::int + 1) / 100.0
  and quantity < :quantity::int;
