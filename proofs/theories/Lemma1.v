(** * Lemma 1: a round

    BF-IO (arXiv 2601.17855), Lemma 1 and (12): [G B] requests of at most [s] tokens are placed on [G] empty workers,
    [B] on each, with the least maximum load. As printed ("every optimum has [|L_g - L_h| <= s]") it is false: workers
    of 10 + 10, 10 + 10 and 1 + 1. Here:

    - every leximax optimum has [|L_g - L_h| <= s - 1];
    - every optimum costs at most [(G - 1) (s - 1)], which is (12) with a better constant.

    Where everybody is admitted least cost and least maximum are the same ([optimal_least_maximum]). The other two hold
    also where more than [G B] requests wait and [G B] of them are chosen, as Theorem 1 needs it. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes Realise Exchange Elementary Existence.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** D <= Imb <= (G - 1) D. *)
Lemma gap_le_imbalance (W : finType) (F : W -> nat) : 0 < #|W| -> gap F <= imbalance F.
Proof.
move=> W0; have [h Hh] := smallest_attained F W0.
by rewrite imbalance_margins (bigD1 h) //= /gap Hh leq_addr.
Qed.

Lemma imbalance_le_gap (W : finType) (F : W -> nat) : 0 < #|W| -> imbalance F <= (#|W| - 1) * gap F.
Proof.
move=> W0; have [g Hg] := largest_attained F W0.
rewrite imbalance_margins (bigD1 g) //= Hg subnn add0n.
have -> : #|W| - 1 = #|[pred k | k != g]| by have := cardC1 g; rewrite subn1 => <-; apply: eq_card.
by rewrite -sum_nat_const; apply: leq_sum => k _; rewrite /gap leq_sub2l // smallest_le.
Qed.

Section Round.
Variables (W R : finType) (p : problem W R) (B s : nat).
Hypotheses (W0 : 0 < #|W|) (empty : forall g, base p g = 0) (equal : forall g, slots p g = B).
Hypotheses (enough : #|W| * B <= #|R|) (sizes : forall i, 1 <= size p i <= s).
Implicit Type a : assignment W R.

Lemma round_slots : free_slots p = #|W| * B.
Proof. by rewrite /free_slots (eq_bigr (fun=> B)) // sum_nat_const. Qed.

Lemma round_admits_all a : #|R| = #|W| * B -> feasible p a -> admitted a = setT.
Proof. by move=> fixed; apply: all_admitted; rewrite round_slots fixed. Qed.

Lemma round_full a : feasible p a -> forall g, #|on a g| = B.
Proof. by move=> Hf g; rewrite -(equal g); apply: slots_filled Hf g; rewrite round_slots. Qed.

(** Least imbalance and least maximum load are the same where nobody waits. *)
Theorem optimal_least_maximum a : #|R| = #|W| * B ->
  optimal p a <-> feasible p a /\ forall a', feasible p a' -> largest (load p a) <= largest (load p a').
Proof.
move=> fixed; have E a1 : feasible p a1 -> cost p a1 + \sum_i size p i = #|W| * largest (load p a1).
  move=> /(round_admits_all fixed) Ha; rewrite -cost_volume [X in _ + X + _]big1 ?addn0 => [|g _]; last exact: empty.
  rewrite Ha.
  by congr addn; apply: eq_bigl => i; rewrite inE.
split=> -[Hf H]; split=> // a' Hf'.
  by rewrite -(leq_pmul2l W0) -!E // leq_add2r; apply: H.
by have := H _ Hf'; rewrite -(leq_pmul2l W0) -!E // leq_add2r.
Qed.

(** If no request of [g] is larger than any of [h], [g] is not heavier: they hold equally many. *)
Lemma larger_request a g h : feasible p a -> load p a h < load p a g ->
  exists i j, [/\ a i = Some g, a j = Some h & size p j < size p i].
Proof.
move=> Hf; rewrite /load !empty !add0n => Hlt.
case: (boolP [exists i in on a g, exists j in on a h, size p j < size p i]).
  by case/exists_inP=> i + /exists_inP[j]; rewrite !inE => /eqP ai /eqP aj ji; exists i, j.
move=> no; suff : \sum_(i in on a g) size p i <= \sum_(i in on a h) size p i by rewrite leqNgt Hlt.
have le i j : i \in on a g -> j \in on a h -> size p i <= size p j.
  move=> ig jh; rewrite leqNgt; apply: contra no => ji; apply/exists_inP; exists i => //.
  by apply/exists_inP; exists j.
pose m := \max_(i in on a g) size p i.
apply: leq_trans (_ : B * m <= _).
  rewrite -(round_full Hf g) -sum_nat_const; apply: leq_sum => i ig; exact: leq_bigmax_cond.
rewrite -(round_full Hf h) -sum_nat_const; apply: leq_sum => j jh; apply/bigmax_leqP => i ig; exact: le.
Qed.

Theorem lemma1_leximax a : leximax p a -> gap (load p a) <= s - 1.
Proof.
move=> Hl; have Hst := leximax_exchange_stable Hl; have Hf := Hl.1.1.
apply: gap_le => // g h; rewrite leqNgt; apply/negP => Hlt.
have Hgt : load p a h < load p a g by apply: leq_trans Hlt; rewrite ltnS leq_addr.
have [i [j [ai aj ji]]] := larger_request Hf Hgt.
have := Hst g h i j ai aj ji; have := sizes i; have := sizes j; lia.
Qed.

Theorem lemma1_every_optimum a : optimal p a -> cost p a <= (#|W| - 1) * (s - 1).
Proof.
move=> Ho; have [|l Hl] := @leximax_exists W R p.
  have Hf := Ho.1; apply: leq_trans (_ : #|admitted a| <= _); last by case/and3P: Hf => _ /eqP->.
  by apply: subset_leq_card; apply/subsetP => i; rewrite !inE; case/and3P: Hf => _ _ /forallP/(_ i)/implyP.
apply: leq_trans (Ho.2 _ Hl.1.1) _; apply: leq_trans (imbalance_le_gap _ W0) _.
by rewrite leq_mul2l lemma1_leximax ?orbT.
Qed.

End Round.
