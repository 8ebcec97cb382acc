(** * Two reductions: empty slots are filled with requests of size 0, and a common divisor is taken out *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes Realise.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** Loads [m + u base'] and sizes [u size']: every cost is [u] times the cost with [base'] and [size']. *)
Section Unit.
Variables (W R : finType) (p p' : problem W R) (m u : nat).
Hypothesis W0 : 0 < #|W|.
Hypotheses (baseE : forall g, base p g = m + u * base p' g) (sizeE : forall i, size p i = u * size p' i).
Hypotheses (slotsE : forall g, slots p g = slots p' g) (mustE : forall i, must p i = must p' i).
Implicit Type a : assignment W R.

Lemma load_unit a g : load p a g = m + u * load p' a g.
Proof. by rewrite /load baseE mulnDr big_distrr addnA /=; congr addn; apply: eq_bigr => i _; apply: sizeE. Qed.

Lemma cost_unit a : cost p a = u * cost p' a.
Proof.
have E : largest (load p a) = m + u * largest (load p' a).
  apply/eqP; rewrite eqn_leq; apply/andP; split.
    apply: largest_le => g; rewrite load_unit leq_add2l leq_mul2l le_largest; exact: orbT.
  by have [g <-] := largest_attained (load p' a) W0; rewrite -load_unit le_largest.
rewrite /cost !imbalance_margins big_distrr /=; apply: eq_bigr => g _.
by rewrite E load_unit subnDl mulnBr.
Qed.

Lemma feasible_unit a : feasible p a = feasible p' a.
Proof.
rewrite /feasible /num_admitted /free_slots; congr [&& _, _ & _].
- by apply: eq_forallb => g; rewrite slotsE.
- by congr (_ == minn _ _); apply: eq_bigr => g _; apply: slotsE.
by apply: eq_forallb => i; rewrite mustE.
Qed.
End Unit.

(** Where fewer requests wait than slots are free, blank requests take the rest: nothing changes. *)
Section Padding.
Variables (W R : finType) (p : problem W R).
Definition num_blanks : nat := free_slots p - #|R|.
Definition padded_requests : finType := sum_finType R (ordinal_finType num_blanks).

Definition padded : problem W padded_requests :=
  Problem (base p) (slots p)
    (fun s : padded_requests => match s with inl i => size p i | inr _ => 0 end)
    (fun s : padded_requests => match s with inl i => must p i | inr _ => false end).

Lemma enum_padded : perm_eq (enum padded_requests) ([seq inl i | i <- enum R] ++ [seq inr j | j <- enum 'I_num_blanks]).
Proof.
have Hl : uniq [seq inl i : padded_requests | i <- enum R] by rewrite map_inj_uniq ?enum_uniq // => x y [].
have Hr : uniq [seq inr j : padded_requests | j <- enum 'I_num_blanks] by rewrite map_inj_uniq ?enum_uniq // => x y [].
apply: uniq_perm; first exact: enum_uniq.
  by rewrite cat_uniq Hl Hr andbT; apply/hasPn => s /mapP[j _ ->]; apply/mapP => -[].
move=> [i|j]; rewrite mem_enum mem_cat; apply/esym/orP; [left | right]; apply/mapP.
  by exists i; rewrite // mem_enum.
by exists j; rewrite // mem_enum.
Qed.

Lemma card_padded : #|padded_requests| = #|R| + num_blanks.
Proof. by rewrite card_sum card_ord. Qed.

Lemma padded_full : free_slots padded <= #|padded_requests|.
Proof. by rewrite card_padded /num_blanks -[free_slots padded]/(free_slots p); lia. Qed.

Lemma sum_padded (P : pred padded_requests) (F : padded_requests -> nat) :
  \sum_(s | P s) F s = \sum_(i : R | P (inl i)) F (inl i) + \sum_(j < num_blanks | P (inr j)) F (inr j).
Proof.
rewrite big_mkcond -big_enum (perm_big _ enum_padded) big_cat !big_map -!enumT !big_enum.
by rewrite -!big_mkcond.
Qed.

Theorem padded_assignment (a : assignment W R) : feasible p a ->
  exists2 a' : assignment W padded_requests, feasible padded a' & forall g, load padded a' g = load p a g.
Proof.
move=> Ha; have [/forallP H1 /eqP H2 /forallP H3] := and3P Ha.
pose m g := slots p g - #|on a g|.
have Hm : \sum_g m g = num_blanks.
  have E : \sum_g m g + \sum_g #|on a g| = free_slots p.
    by rewrite -big_split /=; apply: eq_bigr => g _; rewrite subnK.
  by move: E; rewrite sum_on H2 /num_blanks /num_admitted; lia.
have [|f Hf] := @share_out W (ordinal_finType num_blanks) m setT; first by rewrite Hm cardsT card_ord.
pose a' : assignment W padded_requests := [ffun s => match s with inl i => a i | inr j => f j end].
have on_l i g : (inl i \in on a' g) = (i \in on a g) by rewrite !inE ffunE.
have on_r j g : (inr j \in on a' g) = (f j == Some g) by rewrite !inE ffunE.
have Hon g : #|on a' g| = slots p g.
  rewrite -sum1_card sum_padded (eq_bigl (mem (on a g))) => [|i]; last by rewrite /= on_l.
  rewrite sum1_card [X in _ + X](_ : _ = m g); first by rewrite /m subnKC.
  rewrite (eq_bigl (mem [set j in setT | f j == Some g])) => [|j]; last by rewrite /= on_r !inE.
  by rewrite sum1_card Hf.
exists a' => [|g]; last first.
  rewrite /load sum_padded /= (eq_bigl (mem (on a g))) => [|i]; last by rewrite /= on_l.
  by rewrite [X in _ + (_ + X)]big1 // addn0.
apply/and3P; split.
- by apply/forallP => g; rewrite Hon.
- by rewrite -sum_on /num_admitted (minn_idPr padded_full); apply/eqP/eq_bigr => g _; apply: Hon.
by apply/forallP => -[i|j] //; rewrite ffunE /=; exact: H3.
Qed.
End Padding.
