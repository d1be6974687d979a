\set days random(60, 120)
select /* pricing-summary */
       returned, status, count(*) as lines, sum(quantity) as quantity, sum(price) as price,
       sum(price * (1 - discount)) as revenue, sum(price * (1 - discount) * (1 + tax)) as charged,
       avg(quantity) as mean_quantity, avg(price) as mean_price, avg(discount) as mean_discount
from order_line
where shipped <= date '1998-12-01' - :days::int
group by returned, status
order by returned, status;
