-- The ids are those of a hundred queries ago: they are looked up now and then only.
\if :queries % 100 = 0
select min(id) as lowest, max(id) as highest from sale \gset
\endif
\set queries :queries + 1
\set a random(:lowest, :highest)
\set b random(:lowest, :highest)
\set c random(:lowest, :highest)
\set d random(:lowest, :highest)
\set e random(:lowest, :highest)
\set f random(:lowest, :highest)
\set g random(:lowest, :highest)
\set h random(:lowest, :highest)
\set i random(:lowest, :highest)
\set j random(:lowest, :highest)
select id, product, note from sale where id in (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j);
