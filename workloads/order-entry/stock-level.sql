-- How many of the items in a district's last 20 orders are running out?
\if :pace > 0
\set keying int(2000000 * :pace)
\sleep :keying us
\endif
\set w 1 + :client_id % :scale
\set d 1 + :client_id / :scale % 10
\set threshold random(10, 20)
begin;
select next_order as next from district where warehouse = :w and id = :d \gset
select count(distinct l.item) from order_line l join stock s on s.warehouse = l.warehouse and s.item = l.item
where l.warehouse = :w and l.district = :d and l.order_id >= :next - 20 and l.order_id < :next
    and s.quantity < :threshold;
commit;
\if :pace > 0
\set thinking int(least(50000000, -5000000 * ln(random(1, 1000000) / 1000000.0)) * :pace)
\sleep :thinking us
\endif
