(** * Sizes in equal steps: what no rule can pass

    All sizes are congruent modulo [d], and all free slots are filled. Then a load modulo [d] does not depend on where
    requests are placed ([same_residues]), and the imbalance is at least

      [min_i sum_g ((r_i - r_g) mod d)]

    with [r_g] the residue of load [g] ([spacing_floor]). The heaviest worker [i] is [L_i - L_g] above load [g], and
    that is at least its own residue. Residues are natural numbers, so the difference is written
    [r_i + (d - r_g mod d)]. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes Realise.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** [(x - y) mod d]. *)
Definition residue_gap (d x y : nat) : nat := (x + (d - y %% d)) %% d.

Lemma residue_gap_difference d x y X Y : 0 < d -> Y <= X -> X = x %[mod d] -> Y = y %[mod d] ->
  residue_gap d x y = (X - Y) %% d.
Proof.
move=> d0 YX HX HY; apply/eqP; rewrite -(eqn_modDr Y) subnK // -addnA -modnDmr.
have -> : (d - y %% d + Y) %% d = 0 by rewrite -modnDmr HY subnK ?modnn // ltnW // ltn_pmod.
by rewrite addn0 HX.
Qed.

Theorem spacing_floor (W : finType) (load r : W -> nat) (d : nat) : 0 < #|W| -> 0 < d ->
  (forall g, load g = r g %[mod d]) -> exists i, \sum_g residue_gap d (r i) (r g) <= imbalance load.
Proof.
move=> W0 d0 Hr; have [i Hi] := largest_attained load W0; exists i.
rewrite imbalance_margins; apply: leq_sum => g _.
by rewrite (residue_gap_difference d0 _ (Hr i) (Hr g)) Hi ?leq_mod ?le_largest.
Qed.

Section OneStep.
Variables (W R : finType) (p : problem W R) (d v : nat).
Hypotheses (enough : free_slots p <= #|R|) (congruent : forall i, size p i = v %[mod d]).

Lemma residue_load (a : assignment W R) g : feasible p a -> load p a g = base p g + slots p g * v %[mod d].
Proof.
move=> Hf; have full : #|on a g| = slots p g by apply: slots_filled Hf g.
rewrite /load -modnDmr -modn_summ (eq_bigr (fun=> v %% d)) => [|i _]; last exact: congruent.
by rewrite modn_summ sum_nat_const full modnDmr.
Qed.

(** Two feasible assignments of one step have the same loads modulo [d]. *)
Theorem same_residues (a a' : assignment W R) g : feasible p a -> feasible p a' ->
  load p a g = load p a' g %[mod d].
Proof. by move=> Hf Hf'; rewrite !residue_load. Qed.

(** So the floor of a step can be read off what is there before the decision. *)
Corollary step_floor (a : assignment W R) : 0 < #|W| -> 0 < d -> feasible p a ->
  exists i, \sum_g residue_gap d (base p i + slots p i * v) (base p g + slots p g * v) <= cost p a.
Proof. by move=> W0 d0 Hf; apply: spacing_floor => // g; apply: residue_load. Qed.
End OneStep.
