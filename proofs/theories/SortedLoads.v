(** * Sorted loads and how many workers reach a level

    If of two load vectors the first has fewer workers at some level, and as many at every level above, its loads in
    decreasing order are lexicographically less. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Lemma geq_trans : transitive geq.
Proof. by move=> y x z; rewrite /= => yx zy; apply: leq_trans zy yx. Qed.

Lemma geq_total : total geq.
Proof. by move=> x y; apply: leq_total. Qed.

(** In a decreasing sequence nothing exceeds the head. *)
Lemma count_above x xs u : sorted geq (x :: xs) -> x < u -> count (leq u) (x :: xs) = 0.
Proof.
move=> Hs xu; apply/eqP; rewrite -leqn0 leqNgt -has_count; apply/hasPn => y Hy.
rewrite -ltnNge; apply: leq_ltn_trans xu; move: Hy; rewrite inE => /orP[/eqP->//|Hy].
by have /allP := order_path_min geq_trans Hs; apply.
Qed.

Lemma lexless_count xs ys t : seq.size xs = seq.size ys -> sorted geq xs -> sorted geq ys ->
  count (leq t) xs < count (leq t) ys -> (forall u, t < u -> count (leq u) xs = count (leq u) ys) ->
  lexless xs ys.
Proof.
elim: ys xs => [|y ys IH] [|x xs] //= [Hsz] Hx Hy Hlt Heq.
case: (ltngtP x y) => //= [yx|exy].
  have Hy0 := count_above Hy yx.
  have tx : t < x.
    rewrite ltnNge; apply/negP => xt.
    have : count (leq t) (y :: ys) = 0 by apply: count_above Hy _; apply: leq_trans yx xt.
    by move=> /= E; move: Hlt; rewrite /= E ltn0.
  by have := Heq _ tx; move: Hy0 => /= ->; rewrite leqnn.
subst y; apply: IH => //; try exact: path_sorted Hx; try exact: path_sorted Hy.
  by move: Hlt; rewrite /=; lia.
by move=> u /Heq; rewrite /=; lia.
Qed.

Section Loads.
Variable W : finType.
Implicit Type F : W -> nat.

Lemma count_sorted_loads F u : count (leq u) (sorted_loads F) = #|[set g | u <= F g]|.
Proof.
rewrite /sorted_loads; have /seq.permP -> := permEl (perm_sort geq [seq F g | g <- enum W]).
rewrite count_map cardsE cardE -size_filter; congr (seq.size _).
by rewrite {2}/enum_mem -enumT; apply: eq_filter => g.
Qed.

(** The form in which Lemma 2 uses it. *)
Lemma fewer_at_a_level F F' t : #|[set g | t <= F' g]| < #|[set g | t <= F g]| ->
  (forall u, t < u -> #|[set g | u <= F' g]| = #|[set g | u <= F g]|) ->
  lexless (sorted_loads F') (sorted_loads F).
Proof.
move=> Hlt Heq; apply: (@lexless_count _ _ t).
- by rewrite !size_sort !size_map.
- exact: sort_sorted geq_total _.
- exact: sort_sorted geq_total _.
- by rewrite !count_sorted_loads.
by move=> u tu; rewrite !count_sorted_loads Heq.
Qed.

End Loads.

(** ** [lexless] is a strict order, total on sequences of one length *)
Lemma lexless_irr xs : lexless xs xs = false.
Proof. by elim: xs => //= x xs ->; rewrite ltnn eqxx. Qed.

Lemma lexless_trans : transitive lexless.
Proof.
move=> ys xs zs; elim: xs ys zs => [|x xs IH] [|y ys] [|z zs] //=.
case/orP=> [xy|/andP[/eqP-> H1]]; case/orP=> [yz|/andP[/eqP E H2]].
- by rewrite (ltn_trans xy yz).
- by rewrite -E xy.
- by rewrite yz.
by rewrite E eqxx (IH _ _ H1 H2) orbT.
Qed.

Lemma lexless_total xs ys : seq.size xs = seq.size ys -> [|| lexless xs ys, lexless ys xs | xs == ys].
Proof.
elim: xs ys => [|x xs IH] [|y ys] //= [/IH H].
by rewrite eqseq_cons; case: (ltngtP x y) => //= _; rewrite ?andbT.
Qed.
