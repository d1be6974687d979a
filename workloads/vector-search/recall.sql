-- Which share of the ten nearest does the index find?
select avg(cardinality(array(select unnest(found) intersect select unnest(neighbours)))) / 10.0
from (select neighbours, array(select id from item order by item.embedding <-> query.embedding limit 10) as found
      from query) searched;
