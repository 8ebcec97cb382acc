(** * Elementary bounds, and the Hall bound

    What the largest load and the cost are at least, for every feasible assignment: the average load, the largest
    request that has to be admitted, and Hall's condition for the requests of each size and above. In Python:
    [lbopt/model/floors.py], [lbopt.solvers.recount.lower_bound]. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes SortedLoads Realise.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** Sum of the [k] smallest, and of the [k] largest, values. *)
Definition least_sum (R : finType) (F : R -> nat) k : nat := sumn (take k (sort leq [seq F i | i <- enum R])).
Definition most_sum (R : finType) (F : R -> nat) k : nat := sumn (take k (sort geq [seq F i | i <- enum R])).

Lemma least_of_sorted (xs ys : seq nat) : sorted leq ys -> subseq xs ys -> sumn (take (seq.size xs) ys) <= sumn xs.
Proof.
elim: ys xs => [|y ys IH] [|x xs] //= Hs; have Hs' := path_sorted Hs.
case: (x =P y) => [->|_] Hsub; first by rewrite leq_add2l; apply: IH.
apply: leq_add; last by apply: IH => //; apply: subseq_trans (subseq_cons xs x) Hsub.
have /allP := order_path_min leq_trans Hs; apply; apply: (mem_subseq Hsub); exact: mem_head.
Qed.

Lemma most_of_sorted (xs ys : seq nat) : sorted geq ys -> subseq xs ys -> sumn xs <= sumn (take (seq.size xs) ys).
Proof.
elim: ys xs => [|y ys IH] [|x xs] //= Hs; have Hs' := path_sorted Hs.
case: (x =P y) => [->|_] Hsub; first by rewrite leq_add2l; apply: IH.
apply: leq_add; last by apply: IH => //; apply: subseq_trans (subseq_cons xs x) Hsub.
have /allP := order_path_min geq_trans Hs; apply; apply: (mem_subseq Hsub); exact: mem_head.
Qed.

Lemma chosen_subseq (R : finType) (F : R -> nat) (A : {set R}) (le : rel nat) : total le -> transitive le ->
  exists xs, [/\ subseq xs (sort le [seq F i | i <- enum R]), seq.size xs = #|A| & sumn xs = \sum_(i in A) F i].
Proof.
move=> tot tr; exists (sort le [seq F i | i <- enum A]); split.
- apply: subseq_sort => //; apply: map_subseq; rewrite {1}/enum_mem -enumT.
  exact: filter_subseq.
- by rewrite size_sort size_map -cardE.
have /perm_sumn -> := permEl (perm_sort le [seq F i | i <- enum A]).
by rewrite sumnE big_map big_enum.
Qed.

Lemma least_sum_le (R : finType) (F : R -> nat) (A : {set R}) : least_sum F #|A| <= \sum_(i in A) F i.
Proof.
have [xs [Hsub <- <-]] := chosen_subseq F A leq_total leq_trans.
by apply: least_of_sorted => //; apply: sort_sorted leq_total _.
Qed.

Lemma most_sum_ge (R : finType) (F : R -> nat) (A : {set R}) : \sum_(i in A) F i <= most_sum F #|A|.
Proof.
have [xs [Hsub <- <-]] := chosen_subseq F A geq_total geq_trans.
by apply: most_of_sorted => //; apply: sort_sorted geq_total _.
Qed.

Section Bounds.
Variables (W R : finType) (p : problem W R).
Hypothesis W0 : 0 < #|W|.
Implicit Type a : assignment W R.

(** All loads together: what was there, and what is admitted. *)
Lemma total_load a : \sum_g load p a g = \sum_g base p g + \sum_(i in admitted a) size p i.
Proof.
rewrite /load big_split /=; congr addn.
rewrite (exchange_big_dep (mem (admitted a))) /=; last by move=> g i _; rewrite !inE => /eqP->.
apply: eq_bigr => i; rewrite inE; case E: (a i) => [g|//] _.
rewrite (bigD1 g) /=; last by rewrite inE E.
by rewrite big1 ?addn0 // => h /andP[]; rewrite inE E => /eqP[->]; rewrite eqxx.
Qed.

(** The cost is G M - (loads before) - (tokens admitted). *)
Lemma cost_volume a :
  cost p a + \sum_g base p g + \sum_(i in admitted a) size p i = #|W| * largest (load p a).
Proof.
rewrite -addnA -total_load /cost /imbalance subnK // -sum_nat_const; apply: leq_sum => g _; exact: le_largest.
Qed.

(** The average load: G M is at least the sum of all loads. *)
Theorem average_bound a :
  \sum_g base p g + \sum_(i in admitted a) size p i <= #|W| * largest (load p a).
Proof. by rewrite -cost_volume -addnA leq_addl. Qed.

(** The same without an assignment, and what it says of the cost: the admitted requests hold at least the [U] smallest
    sizes together, and at most the [U] largest. *)
Corollary average_bound_least a : feasible p a ->
  \sum_g base p g + least_sum (size p) (num_admitted p) <= #|W| * largest (load p a).
Proof.
move=> Hf; apply: leq_trans (average_bound a); rewrite leq_add2l.
by case/and3P: Hf => _ /eqP <- _; apply: least_sum_le.
Qed.

Corollary volume_bound a M : feasible p a -> M <= largest (load p a) ->
  #|W| * M - \sum_g base p g - most_sum (size p) (num_admitted p) <= cost p a.
Proof.
move=> Hf HM; case/and3P: Hf => _ /eqP <- _; have := cost_volume a; have := most_sum_ge (size p) (admitted a).
have : #|W| * M <= #|W| * largest (load p a) by rewrite leq_mul2l HM orbT.
lia.
Qed.

(** A load before the decision stays. *)
Theorem base_bound a g : base p g <= largest (load p a).
Proof. by apply: leq_trans (le_largest _ g); apply: leq_addr. Qed.

(** The largest item: a request that is admitted goes to some worker with a free slot. *)
Theorem largest_item_bound a i K : feasible p a -> i \in admitted a ->
  (forall g, 0 < slots p g -> K <= base p g) -> K + size p i <= largest (load p a).
Proof.
case/and3P=> /forallP H1 _ _; rewrite inE; case E: (a i) => [g|//] _ HK.
apply: leq_trans (le_largest _ g); rewrite /load (bigD1 i) ?inE ?E //= addnA.
apply: leq_trans (leq_addr _ _); rewrite leq_add2r; apply: HK; apply: leq_trans (H1 g).
by apply/card_gt0P; exists i; rewrite inE E.
Qed.

(** Requests of [x] tokens or more on worker [g]: not more than its slots, nor than fit below the largest load. *)
Lemma fit_on_worker a g x : feasible p a -> 0 < x ->
  #|[set i in on a g | x <= size p i]| <= minn (slots p g) ((largest (load p a) - base p g) %/ x).
Proof.
case/and3P=> /forallP H1 _ _ x0; rewrite leq_min; apply/andP; split.
  by apply: leq_trans (H1 g); apply: subset_leq_card; apply/subsetP => i; rewrite !inE => /andP[].
rewrite leq_divRL //; apply: leq_trans (_ : load p a g - base p g <= _); last by rewrite leq_sub2r // le_largest.
rewrite /load addKn -sum_nat_const big_mkcond [X in _ <= X]big_mkcond /=; apply: leq_sum => i _.
by rewrite !inE; case: (a i == Some g) => //=; case: ifP.
Qed.

(** The Hall bound: the admitted requests of [x] tokens or more must fit. *)
Theorem hall_bound a x : feasible p a -> 0 < x ->
  #|[set i in admitted a | x <= size p i]|
    <= \sum_g minn (slots p g) ((largest (load p a) - base p g) %/ x).
Proof.
move=> Hf x0; apply: leq_trans (_ : \sum_g #|[set i in [set i | x <= size p i] | a i == Some g]| <= _).
  by rewrite sum_over_workers; apply: subset_leq_card; apply/subsetP => i; rewrite !inE andbC.
apply: leq_sum => g _; apply: leq_trans (fit_on_worker g Hf x0); apply: subset_leq_card.
by apply/subsetP => i; rewrite !inE andbC.
Qed.

(** Where everybody is admitted, or for those that must be: a bound that asks for no assignment. *)
Corollary hall_bound_all a x : feasible p a -> #|R| <= free_slots p -> 0 < x ->
  #|[set i | x <= size p i]| <= \sum_g minn (slots p g) ((largest (load p a) - base p g) %/ x).
Proof.
move=> Hf Hall x0; apply: leq_trans (hall_bound Hf x0); apply: subset_leq_card; apply/subsetP => i.
rewrite !inE => ->; rewrite andbT.
have := all_admitted Hall Hf.
by move/setP/(_ i); rewrite !inE => ->; rewrite ?andbT.
Qed.

Corollary hall_bound_must a x : feasible p a -> 0 < x ->
  #|[set i | must p i & x <= size p i]| <= \sum_g minn (slots p g) ((largest (load p a) - base p g) %/ x).
Proof.
move=> Hf x0; apply: leq_trans (hall_bound Hf x0); apply: subset_leq_card; apply/subsetP => i.
by rewrite !inE => /andP[mi ->]; case/and3P: Hf => _ _ /forallP/(_ i); rewrite mi /= => ->.
Qed.

(** So no largest load is possible at which the requests that must be admitted do not fit. *)
Lemma fit_monotone M M' x : M <= M' ->
  \sum_g minn (slots p g) ((M - base p g) %/ x) <= \sum_g minn (slots p g) ((M' - base p g) %/ x).
Proof.
move=> H; apply: leq_sum => g _; rewrite leq_min geq_minl /=; apply: leq_trans (geq_minr _ _) _.
by apply: leq_div2r; apply: leq_sub2r.
Qed.

Corollary hall_bound_refutes a x M : feasible p a -> 0 < x ->
  \sum_g minn (slots p g) ((M - base p g) %/ x) < #|[set i | must p i & x <= size p i]| -> M < largest (load p a).
Proof.
move=> Hf x0; rewrite ltnNge => Hno; rewrite ltnNge; apply: contra Hno => HM.
exact: leq_trans (hall_bound_must Hf x0) (fit_monotone x HM).
Qed.

Corollary hall_bound_refutes_all a x M : feasible p a -> #|R| <= free_slots p -> 0 < x ->
  \sum_g minn (slots p g) ((M - base p g) %/ x) < #|[set i | x <= size p i]| -> M < largest (load p a).
Proof.
move=> Hf Hall x0; rewrite ltnNge => Hno; rewrite ltnNge; apply: contra Hno => HM.
exact: leq_trans (hall_bound_all Hf Hall x0) (fit_monotone x HM).
Qed.

End Bounds.
