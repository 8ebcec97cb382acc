(** * Lemma 2: the gap after an optimal step with an overloaded pool

    BF-IO (arXiv 2601.17855), Lemma 2, asserts that the gap [D] after an optimal admission is at most
    [max (s_max, D_pre - eta p B)] on an event on which the free slots of all workers are nearly equal. As printed it is
    false. Here is the form that holds under the paper's own hypothesis on the pool (Definition 1), outcome by outcome:

      [D <= (s - 2) + (D_pre - (s * min c - (s - 1) * max c))^+],

    with [D] and [D_pre] the gaps between the largest and the smallest load after and before admission, [c] the free
    slots, and every size from 1 to [s], [s >= 2]:

    - (i)  of every leximax optimum, and of every exchange-stable optimum (so also of one with the least sum of squared
           loads: [least_squares_exchange_stable] in [Exchange.v]);
    - (ii) of every optimum, if at least [free_slots] of the waiting requests have size [s].

    The subtraction of natural numbers stops at 0, which is the positive part. No request is forced ([must] is empty):
    the paper has no such requests. Loads that are not whole: let the unit of all numbers be [1 / q] token and all sizes
    multiples of [q]; then [D < q (s - 1) + (D_pre - q (s * min c - (s - 1) * max c))^+], strictly. With [q = 1] the two
    forms are one. (Finitely many rational loads have a common denominator [q].) *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes Counts Lemma2Counts Realise Exchange.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Bridge.
Variables (W R : finType) (p : problem W R) (q s : nat) (class : R -> 'I_s).
Hypotheses (q0 : 0 < q) (classP : forall i, size p i = q * (class i).+1).
Hypothesis free : forall i, ~~ must p i.
Hypothesis over : overloaded p.
Implicit Type a : assignment W R.

Definition pool (x : 'I_s) : nat := #|[set i | class i == x]|.

Lemma sum_counts a g : \sum_x counts class a g x = #|on a g|.
Proof.
rewrite -sum1_card (partition_big class xpredT) //=; apply: eq_bigr => x _.
by rewrite /counts -sum1_card; apply: eq_bigl => i; rewrite !inE.
Qed.

Lemma load_counts a g : load p a g = cload q (base p) (counts class a) g.
Proof.
rewrite /load /cload; congr addn; rewrite (partition_big class xpredT) //= /volume big_distrr /=.
apply: eq_bigr => x _; rewrite (eq_bigr (fun=> q * x.+1)) => [|i /andP[_ /eqP<-]]; last exact: classP.
rewrite sum_nat_const (_ : #|_| = counts class a g x); first by rewrite [LHS]mulnC mulnA.
by apply: eq_card => i; rewrite /counts !inE /= unfold_in inE.
Qed.

Lemma cost_counts a : cost p a = imbalance (cload q (base p) (counts class a)).
Proof.
rewrite /cost /imbalance /largest; congr (_ * _ - _); last by apply: eq_bigr => g _; apply: load_counts.
by apply: eq_bigr => g _; apply: load_counts.
Qed.

Lemma many_requests : free_slots p <= #|R|.
Proof. apply: leq_trans (over 0) _; exact: max_card. Qed.

Lemma all_slots_filled : num_admitted p = free_slots p.
Proof. exact: (minn_idPr many_requests). Qed.

Lemma feasible_full a : feasible p a -> forall g, #|on a g| = slots p g.
Proof. exact: slots_filled many_requests. Qed.

Lemma feasible_counts a : feasible p a -> cfeasible (slots p) pool (counts class a).
Proof.
move=> Hf; split=> [g|x]; first by rewrite sum_counts feasible_full.
rewrite (eq_bigr (fun g => #|[set i in [set i | class i == x] | a i == Some g]|)).
  by rewrite sum_over_workers; apply: subset_leq_card; apply/subsetP => i; rewrite !inE => /andP[].
by move=> g _; apply: eq_card => i; rewrite !inE andbC.
Qed.

Lemma feasible_of_counts a : cfeasible (slots p) pool (counts class a) -> feasible p a.
Proof.
case=> H1 _; have Hon g : #|on a g| = slots p g by rewrite -sum_counts.
apply/and3P; split; first by apply/forallP => g; rewrite Hon.
  by rewrite -sum_on all_slots_filled; apply/eqP; apply: eq_bigr.
by apply/forallP => i; rewrite (negbTE (free i)).
Qed.

Lemma optimal_counts a : optimal p a -> coptimal q (base p) (slots p) pool (counts class a).
Proof.
case=> Hf Ho; split; first exact: feasible_counts.
move=> n Hn; have [a' Ha'] := realise Hn.2.
have E : forall g, counts class a' g =1 n g by [].
have Hf' : feasible p a'.
  apply: feasible_of_counts; split=> [g|x]; first by rewrite -(Hn.1 g); apply: eq_bigr.
  by apply: leq_trans (Hn.2 x); apply: leq_sum => g _; rewrite E.
have := Ho _ Hf'; rewrite !cost_counts.
suff -> : imbalance (cload q (base p) (counts class a')) = imbalance (cload q (base p) n) by [].
have L g : cload q (base p) (counts class a') g = cload q (base p) n g.
  by rewrite /cload /volume; congr (_ + _ * _); apply: eq_bigr => x _; rewrite E.
by rewrite /imbalance /largest; congr (_ * _ - _); apply: eq_bigr => g _; apply: L.
Qed.

Lemma stable_counts a : exchange_stable p a -> cstable q (base p) (counts class a).
Proof.
move=> Hst g h x y yx Hx Hy; have [i] := card_gt0P Hx; have [j] := card_gt0P Hy.
rewrite !inE => /andP[/eqP aj /eqP cj] /andP[/eqP ai /eqP ci].
have ji : size p j < size p i by rewrite !classP ci cj ltn_pmul2l.
have := Hst g h i j ai aj ji; rewrite -!load_counts !classP ci cj.
have : q * x.+1 = q * y.+1 + q * (x - y) by rewrite -mulnDr; congr (q * _); lia.
lia.
Qed.

Lemma overloaded_counts : coverloaded (slots p) pool.
Proof.
move=> x; apply: leq_trans (over (q * x.+1)) _.
rewrite -sum1_card (partition_big class (fun y => y != x)) /=; last first.
  by move=> i; rewrite inE classP; apply: contraNneq => ->.
apply: leq_sum => y yx; rewrite sum1_card /pool; apply: subset_leq_card; apply/subsetP => i.
by rewrite unfold_in => /andP[_ iy]; rewrite inE.
Qed.

Lemma plentiful_counts : free_slots p <= #|[set i | size p i == q * s]| ->
  forall x : 'I_s, x.+1 = s -> U (slots p) <= pool x.
Proof.
move=> H x xs; apply: leq_trans H _; apply: subset_leq_card; apply/subsetP => i.
by rewrite !inE classP eqn_pmul2l // => /eqP E; apply/eqP/val_inj/succn_inj; rewrite E.
Qed.

End Bridge.

(** [D_pre - q (s * min c - (s - 1) * max c)], or 0. *)
Definition reduced_gap (W R : finType) (p : problem W R) (q s : nat) : nat :=
  gap (base p) + q * ((s - 1) * largest (slots p)) - q * (s * smallest (slots p)).

(** Sizes are [q] times a whole number from 1 to [s]. *)
Definition sizes_within (W R : finType) (p : problem W R) (q s : nat) : Prop :=
  forall i, exists x, 1 <= x <= s /\ size p i = q * x.

Section Statements.
Variables (W R : finType) (p : problem W R) (s : nat).
Hypotheses (W0 : 0 < #|W|) (s2 : 2 <= s).
Hypothesis free : forall i, ~~ must p i.
Hypothesis over : overloaded p.
Implicit Type a : assignment W R.

Section Fractional.
Variable q : nat.
Hypotheses (q0 : 0 < q) (sizes : sizes_within p q s).

Lemma class_exists : exists class : R -> 'I_s, forall i, size p i = q * (class i).+1.
Proof.
apply: (@fin_all_exists R (fun=> 'I_s) (fun i x => size p i = q * x.+1)) => i.
have [[|x] [/andP[x1 xs] E]] := sizes i; first by [].
by exists (Ordinal xs).
Qed.

(** Part (i) for loads that are not whole. *)
Theorem gap_exchange_stable_fractional a : optimal p a -> exchange_stable p a ->
  gap (load p a) < q * (s - 1) + reduced_gap p q s.
Proof.
move=> Ho Hst; have [class classP] := class_exists.
have H := counts_stable q0 s2 (overloaded_counts classP over) (optimal_counts classP free over Ho)
  (stable_counts q0 classP Hst) (le_gap (base p)).
have Hc g : smallest (slots p) <= slots p g <= largest (slots p) by rewrite smallest_le le_largest.
rewrite -ltnS; suff : gap (load p a) <= (q * (s - 1) + reduced_gap p q s).-1.
  have : 0 < q * (s - 1) by rewrite muln_gt0 q0 subn_gt0.
  lia.
apply: gap_le => // g h; have := H _ _ Hc g h; rewrite -!(load_counts classP) /reduced_gap -subn1 !subn1.
lia.
Qed.

Theorem gap_leximax_fractional a : leximax p a -> gap (load p a) < q * (s - 1) + reduced_gap p q s.
Proof. by move=> Hl; apply: gap_exchange_stable_fractional; [case: Hl | apply: leximax_exchange_stable]. Qed.

(** Part (ii) for loads that are not whole. *)
Theorem gap_plentiful_fractional a : free_slots p <= #|[set i | size p i == q * s]| -> optimal p a ->
  gap (load p a) < q * (s - 1) + reduced_gap p q s.
Proof.
move=> Hpl Ho; have [class classP] := class_exists.
have H := counts_plentiful q0 s2 (overloaded_counts classP over) (optimal_counts classP free over Ho)
  (plentiful_counts q0 classP Hpl) (le_gap (base p)).
have Hc g : smallest (slots p) <= slots p g <= largest (slots p) by rewrite smallest_le le_largest.
rewrite -ltnS; suff : gap (load p a) <= (q * (s - 1) + reduced_gap p q s).-1.
  have : 0 < q * (s - 1) by rewrite muln_gt0 q0 subn_gt0.
  lia.
apply: gap_le => // g h; have := H _ _ Hc g h; rewrite -!(load_counts classP) /reduced_gap -subn1 !subn1.
lia.
Qed.

End Fractional.

(** ** The theorem as it is cited: whole loads *)
Hypothesis sizes : forall i, 1 <= size p i <= s.

Lemma sizes_whole : sizes_within p 1 s.
Proof. by move=> i; exists (size p i); rewrite sizes mul1n. Qed.

(** [D_pre - (s min c - (s - 1) max c)], or 0. *)
Definition whole_gap_bound : nat :=
  (s - 2) + (gap (base p) + (s - 1) * largest (slots p) - s * smallest (slots p)).

Lemma reduced_gap_whole b : b < 1 * (s - 1) + reduced_gap p 1 s -> b <= whole_gap_bound.
Proof. by rewrite /reduced_gap /whole_gap_bound !mul1n; lia. Qed.

(** Part (i), every leximax optimum. *)
Theorem gap_leximax a : leximax p a -> gap (load p a) <= whole_gap_bound.
Proof. by move=> Hl; apply: reduced_gap_whole; apply: gap_leximax_fractional sizes_whole _ Hl. Qed.

(** Part (i), every exchange-stable optimum. *)
Theorem gap_exchange_stable a : optimal p a -> exchange_stable p a -> gap (load p a) <= whole_gap_bound.
Proof. by move=> Ho Hs; apply: reduced_gap_whole; apply: gap_exchange_stable_fractional sizes_whole _ Ho Hs. Qed.

(** Part (ii), every optimum where the largest size is plentiful. *)
Theorem gap_plentiful a : free_slots p <= #|[set i | size p i == s]| -> optimal p a ->
  gap (load p a) <= whole_gap_bound.
Proof.
move=> Hpl Ho; apply: reduced_gap_whole; apply: gap_plentiful_fractional sizes_whole _ _ Ho => //.
by rewrite mul1n.
Qed.

End Statements.

(** ** Two plentiful sizes, and replete pools

    If the largest size and one other have as many requests as there are free slots, the pool is overloaded, and every
    optimum has the bound. In a replete pool every size has. *)
Section Plentiful.
Variables (W R : finType) (p : problem W R) (s : nat).
Hypotheses (W0 : 0 < #|W|) (free : forall i, ~~ must p i) (sizes : forall i, 1 <= size p i <= s).

Definition plentiful (x : nat) : Prop := free_slots p <= #|[set i | size p i == x]|.

(** At least two sizes are present, and each is plentiful. *)
Definition replete : Prop := (exists i j, size p i != size p j) /\ forall i, plentiful (size p i).

Lemma two_plentiful_overloaded x y : x != y -> plentiful x -> plentiful y -> overloaded p.
Proof.
move=> xy Hx Hy z; case: (z =P x) => [->|/eqP zx].
  by apply: leq_trans Hy _; apply: subset_leq_card; apply/subsetP => i; rewrite !inE => /eqP->; rewrite eq_sym.
by apply: leq_trans Hx _; apply: subset_leq_card; apply/subsetP => i; rewrite !inE => /eqP->; rewrite eq_sym.
Qed.

Theorem gap_two_plentiful v a : 2 <= s -> v != s -> plentiful s -> plentiful v -> optimal p a ->
  gap (load p a) <= whole_gap_bound p s.
Proof.
move=> s2 vs Hs Hv Ho; apply: gap_plentiful => //; exact: two_plentiful_overloaded vs Hv Hs.
Qed.

Theorem gap_replete a : (exists i, size p i = s) -> replete -> optimal p a -> gap (load p a) <= whole_gap_bound p s.
Proof.
case=> i0 Hs [[i [j ij]] Hr] Ho.
have [k Hk] : exists k, size p k != s.
  by case: (size p i =P s) => [E|/eqP E]; [exists j; rewrite -E eq_sym | exists i].
have s2 : 2 <= s by have := sizes k; move: Hk; lia.
by apply: (gap_two_plentiful s2 Hk) => //; rewrite -Hs; apply: Hr.
Qed.
End Plentiful.
