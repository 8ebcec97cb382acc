(** * The largest and the smallest of finitely many numbers *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Extremes.
Variable W : finType.
Implicit Type F : W -> nat.

Lemma le_largest F g : F g <= largest F.
Proof. exact: leq_bigmax. Qed.

Lemma largest_le F K : (forall g, F g <= K) -> largest F <= K.
Proof. by move=> H; apply/bigmax_leqP. Qed.

Lemma largest_attained F : 0 < #|W| -> exists g, F g = largest F.
Proof. by move=> W0; have [g Hg] := eq_bigmax F W0; exists g; rewrite /largest Hg. Qed.

Lemma smallest_le F g : smallest F <= F g.
Proof.
rewrite /smallest; move: (largest F) => M; have := mem_index_enum g; elim: (index_enum W) => //= k r IH.
rewrite inE big_cons => /orP[/eqP->|/IH]; lia.
Qed.

Lemma smallest_attained F : 0 < #|W| -> exists g, F g = smallest F.
Proof.
move=> W0; have := largest_attained F W0; rewrite /smallest; move: (largest F) => M HM.
elim: (index_enum W) => [|k r [g IH]]; first by rewrite big_nil.
rewrite big_cons -IH; case: (leqP (F k) (F g)) => H; [exists k|exists g]; lia.
Qed.

Lemma gap_le F K : 0 < #|W| -> (forall g h, F g <= F h + K) -> gap F <= K.
Proof.
move=> W0 H; rewrite /gap; have [g <-] := largest_attained F W0; have [h <-] := smallest_attained F W0.
have := H g h; lia.
Qed.

Lemma le_gap F g h : F g <= F h + gap F.
Proof. rewrite /gap; have := le_largest F g; have := smallest_le F h; have := le_largest F h; lia. Qed.

(** G max - sum is the sum of the margins below the maximum. *)
Lemma imbalance_margins F : imbalance F = \sum_g (largest F - F g).
Proof.
rewrite /imbalance; apply: (@addIn (\sum_g F g)); rewrite subnK.
  by rewrite -big_split /= -sum_nat_const; apply: eq_bigr => g _; rewrite subnK // le_largest.
by rewrite -sum_nat_const; apply: leq_sum => g _; apply: le_largest.
Qed.

End Extremes.
