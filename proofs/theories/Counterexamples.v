(** * What the paper prints, and what may not be left out: three small steps, computed

    - BF-IO's Lemma 1 as printed, "every optimum of a round has [|L_g - L_h| <= s_max]", is false: three workers of two
      slots, sizes 10, 10, 10, 10, 1, 1; the optimum 10 + 10, 10 + 10, 1 + 1 has a gap of 18.
    - Lemma 2 (i) is not true of every optimum: four workers of one slot with loads 6, 6, 5, 6 and an overloaded pool of
      sizes 1, 1, 2, 4, 5, 5 have an optimum with a gap of 4, where the bound is 3. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify ssrZ.
From LB Require Import Model BestProfit PricedEnvelopes Checker Arrays Lemma2.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** An array whose cost is the least of all arrays is an optimal assignment. *)
Lemma array_optimal (x : input) (a : seq Z) : valid x -> seq.size a = seq.size (in_sizes x) ->
  all (fun w => (-1 <=? w)%Z && (w <? Z.of_nat (seq.size (in_loads x)))%Z) a ->
  array_feasible x a -> array_optimum x = Some (array_cost x a) -> optimal (problem_of x) (assignment_of x a).
Proof.
move=> xv sa ra Ha Hopt; split; first by rewrite -(array_feasible_correct xv sa ra).
move=> b Hb; have [H1 _] := fold_least xv (erefl (array_optimum x)).
have Eb := array_cost_correct xv (size_array_of b) (range_array_of xv b).
have Fb := array_feasible_correct xv (size_array_of b) (range_array_of xv b).
rewrite assignment_of_array // in Eb Fb.
have [v] := H1 _ (in_all_arrays xv b) (etrans Fb Hb); rewrite Hopt Eb (array_cost_correct xv sa ra) => -[<-].
lia.
Qed.

Definition round : input :=
  Input [:: 0; 0; 0]%Z [:: 2; 2; 2] [:: 10; 10; 10; 10; 1; 1]%Z (nseq 6 false).
Definition round_placed : seq Z := [:: 0; 0; 1; 1; 2; 2]%Z.

Theorem printed_lemma1_is_false : exists a, optimal (problem_of round) a /\ gap (load (problem_of round) a) = 18.
Proof.
exists (assignment_of round round_placed); split; first by apply: array_optimal; vm_compute.
by apply: Nat2Z.inj; rewrite -array_gap_correct //; vm_compute.
Qed.

Definition scarce : input :=
  Input [:: 6; 6; 5; 6]%Z [:: 1; 1; 1; 1] [:: 1; 1; 2; 4; 5; 5]%Z (nseq 6 false).
Definition scarce_placed : seq Z := [:: -1; -1; 2; 0; 1; 3]%Z.

Lemma scarce_overloaded : overloaded (problem_of scarce).
Proof.
move=> x; have -> : free_slots (problem_of scarce) = 4.
  by rewrite /free_slots /= -big_enum -(big_map val xpredT (nth 0 [:: 1; 1; 1; 1])) val_enum_ord unlock.
have -> : #|[set i | size (problem_of scarce) i != x]| = count (predC1 x) (map Z.to_nat (in_sizes scarce)).
  rewrite [in RHS](@list_as_map _ 0%Z (in_sizes scarce) 6) // -map_comp count_map cardE -size_filter.
  congr seq.size; rewrite /enum_mem -filter_predI; apply: eq_filter => i /=; by rewrite in_set andbT.
have -> : map Z.to_nat (in_sizes scarce) = [:: 1; 1; 2; 4; 5; 5] by [].
rewrite /=; lia.
Qed.

Lemma scarce_bound : whole_gap_bound (problem_of scarce) 5 = 3.
Proof.
by rewrite /whole_gap_bound /gap /smallest /largest /= !big_ord_recl !big_ord0.
Qed.

Theorem plain_optimum_above_the_bound : overloaded (problem_of scarce) /\
  exists a, optimal (problem_of scarce) a /\ whole_gap_bound (problem_of scarce) 5 < gap (load (problem_of scarce) a).
Proof.
split; first exact: scarce_overloaded.
exists (assignment_of scarce scarce_placed); split; first by apply: array_optimal; vm_compute.
rewrite scarce_bound; have -> // : gap (load (problem_of scarce) (assignment_of scarce scarce_placed)) = 4.
by apply: Nat2Z.inj; rewrite -array_gap_correct //; vm_compute.
Qed.

(** ** The printed Lemma 2

    Workers of one slot with 10, 0 and 10 tokens; a pool of sizes 1, 5, 7, 8, 8, 8, which is overloaded. *Every* optimum
    gives 8 to every worker, and the gap stays 10. Printed: at most [max (8, 10 - eta p B)] for some [eta p B > 0]. So
    no rule for ties helps. *)
Lemma gap_of_every_optimum (x : input) (c d : Z) : valid x -> array_optimum x = Some c ->
  all (fun a => array_feasible x a && (array_cost x a =? c)%Z ==> (array_gap x a =? d)%Z)
    (all_arrays (seq.size (in_loads x)) (seq.size (in_sizes x))) ->
  forall b, optimal (problem_of x) b -> Z.of_nat (gap (load (problem_of x) b)) = d.
Proof.
move=> xv Hc /allP Hall b Hb.
have Eb := array_cost_correct xv (size_array_of b) (range_array_of xv b).
have Fb := array_feasible_correct xv (size_array_of b) (range_array_of xv b).
have Gb := array_gap_correct xv (size_array_of b) (range_array_of xv b).
rewrite assignment_of_array // in Eb Fb Gb.
have := array_optimum_correct xv Hb; rewrite Hc => -[E].
have := Hall _ (in_all_arrays xv b); rewrite Fb Hb.1 Eb E Z.eqb_refl Gb /= => /Z.eqb_eq.
by [].
Qed.

Definition stubborn : input :=
  Input [:: 10; 0; 10]%Z [:: 1; 1; 1] [:: 1; 5; 7; 8; 8; 8]%Z (nseq 6 false).
Definition stubborn_placed : seq Z := [:: -1; -1; -1; 0; 1; 2]%Z.

Lemma stubborn_overloaded : overloaded (problem_of stubborn).
Proof.
move=> x; have -> : free_slots (problem_of stubborn) = 3.
  by rewrite /free_slots /= -big_enum -(big_map val xpredT (nth 0 [:: 1; 1; 1])) val_enum_ord unlock.
have -> : #|[set i | size (problem_of stubborn) i != x]| = count (predC1 x) (map Z.to_nat (in_sizes stubborn)).
  rewrite [in RHS](@list_as_map _ 0%Z (in_sizes stubborn) 6) // -map_comp count_map cardE -size_filter.
  congr seq.size; rewrite /enum_mem -filter_predI; apply: eq_filter => i /=; by rewrite in_set andbT.
have -> : map Z.to_nat (in_sizes stubborn) = [:: 1; 5; 7; 8; 8; 8] by [].
rewrite /=; lia.
Qed.

Theorem printed_lemma2_is_false :
  [/\ overloaded (problem_of stubborn), gap (base (problem_of stubborn)) = 10,
      exists a, optimal (problem_of stubborn) a &
      forall a, optimal (problem_of stubborn) a -> gap (load (problem_of stubborn) a) = 10].
Proof.
split; first exact: stubborn_overloaded.
- by rewrite /gap /smallest /largest /= !big_ord_recl !big_ord0.
- by exists (assignment_of stubborn stubborn_placed); apply: array_optimal; vm_compute.
move=> a Ha; apply: Nat2Z.inj.
by apply: (@gap_of_every_optimum stubborn 10 10) Ha; vm_compute.
Qed.
