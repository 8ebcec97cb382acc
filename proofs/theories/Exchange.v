(** * The exchange of two admitted requests

    Request [i] of worker [g] and request [j] of worker [h] change places: everybody else stays. A leximax optimum is
    exchange-stable, for an exchange after which both loads are below the larger old one makes the sorted loads
    lexicographically less and costs no more. *)
From mathcomp Require Import all_ssreflect all_fingroup.
From mathcomp Require Import zify.
From LB Require Import Model Extremes SortedLoads.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Exchange.
Variables (W R : finType) (p : problem W R) (a : assignment W R) (g h : W) (i j : R).
Hypotheses (ai : a i = Some g) (aj : a j = Some h) (gh : g != h).

Definition exchanged : assignment W R := [ffun k => a (tperm i j k)].
Local Notation a' := exchanged.

Lemma on_exchanged k : on a' k = tperm i j @^-1: on a k.
Proof. by apply/setP => x; rewrite !inE ffunE. Qed.

Lemma card_exchanged k : #|on a' k| = #|on a k|.
Proof. by rewrite on_exchanged on_card_preimset //; apply: onW_bij; apply: injF_bij; apply: perm_inj. Qed.

Lemma admitted_exchanged x : (a' x != None) = (a x != None).
Proof. by rewrite ffunE; case: tpermP => [->|->|//]; rewrite ai aj. Qed.

Lemma feasible_exchanged : feasible p a -> feasible p a'.
Proof.
case/and3P=> /forallP H1 /eqP H2 /forallP H3; apply/and3P; split.
- by apply/forallP => k; rewrite card_exchanged.
- by apply/eqP; rewrite -H2; apply: eq_card => x; rewrite !inE admitted_exchanged.
by apply/forallP => x; rewrite admitted_exchanged.
Qed.

Lemma volume_exchanged k :
  \sum_(x in on a' k) size p x = \sum_(x in on a k) size p (tperm i j x).
Proof.
rewrite (reindex_inj (@perm_inj _ (tperm i j))) /=.
by apply: eq_bigl => x; rewrite !inE ffunE tpermK.
Qed.

Lemma load_exchanged_g : load p a' g + size p i = load p a g + size p j.
Proof.
rewrite /load volume_exchanged (bigD1 i) ?inE ?ai //= tpermL.
rewrite [in X in _ = X](bigD1 i) ?inE ?ai //=.
rewrite (eq_bigr (size p)); first lia.
move=> x /andP[]; rewrite inE => /eqP ax xi; rewrite tpermD // eq_sym //.
by apply/eqP => E; move: ax; rewrite E aj => -[] /eqP; rewrite eq_sym (negbTE gh).
Qed.

Lemma load_exchanged_h : load p a' h + size p j = load p a h + size p i.
Proof.
rewrite /load volume_exchanged (bigD1 j) ?inE ?aj //= tpermR.
rewrite [in X in _ = X](bigD1 j) ?inE ?aj //=.
rewrite (eq_bigr (size p)); first lia.
move=> x /andP[]; rewrite inE => /eqP ax xj; rewrite tpermD // eq_sym //.
by apply/eqP => E; move: ax; rewrite E ai => -[] /eqP; rewrite (negbTE gh).
Qed.

Lemma load_exchanged_other k : k != g -> k != h -> load p a' k = load p a k.
Proof.
move=> kg kh; rewrite /load volume_exchanged; congr (_ + _); apply: eq_bigr => x.
rewrite inE => /eqP ax; rewrite tpermD //; apply/eqP => E; move: ax; rewrite -E.
  by rewrite ai => -[] /eqP; rewrite eq_sym (negbTE kg).
by rewrite aj => -[] /eqP; rewrite eq_sym (negbTE kh).
Qed.

Lemma total_exchanged : \sum_k load p a' k = \sum_k load p a k.
Proof.
rewrite (bigD1 g) //= (bigD1 h) 1?eq_sym //= [in X in _ = X](bigD1 g) //= [in X in _ = X](bigD1 h) 1?eq_sym //=.
rewrite (eq_bigr (load p a)); last by move=> k /andP[k1 k2]; apply: load_exchanged_other.
have := load_exchanged_g; have := load_exchanged_h; lia.
Qed.

Hypothesis better : load p a h + size p i < load p a g + size p j.

Lemma both_below : size p j < size p i -> load p a' g < load p a g /\ load p a' h < load p a g.
Proof. have := load_exchanged_g; have := load_exchanged_h; lia. Qed.

Lemma exchanged_costs_no_more : size p j < size p i -> cost p a' <= cost p a.
Proof.
move=> ji; have [Hg Hh] := both_below ji; rewrite /cost /imbalance total_exchanged leq_sub2r // leq_mul2l.
apply/orP; right; apply: largest_le => k.
case: (k =P g) => [->|/eqP kg]; first by apply: leq_trans (ltnW Hg) (le_largest _ _).
case: (k =P h) => [->|/eqP kh]; first by apply: leq_trans (ltnW Hh) (le_largest _ _).
by rewrite load_exchanged_other // le_largest.
Qed.

Lemma exchanged_lexless : size p j < size p i ->
  lexless (sorted_loads (load p a')) (sorted_loads (load p a)).
Proof.
move=> ji; have [Hg Hh] := both_below ji.
have hg : load p a h < load p a g by lia.
apply: (@fewer_at_a_level _ _ _ (load p a g)) => [|u Hu].
  apply: proper_card; apply/properP; split.
    apply/subsetP => k; rewrite !inE.
    case: (k =P g) => [->|/eqP kg]; first by [].
    case: (k =P h) => [->|/eqP kh]; first lia.
    by rewrite load_exchanged_other.
  by exists g; rewrite !inE //; lia.
apply: eq_card => k; rewrite !inE.
case: (k =P g) => [->|/eqP kg]; first lia.
case: (k =P h) => [->|/eqP kh]; first lia.
by rewrite load_exchanged_other.
Qed.

End Exchange.

(** A leximax optimum is exchange-stable. *)
Theorem leximax_exchange_stable (W R : finType) (p : problem W R) (a : assignment W R) :
  leximax p a -> exchange_stable p a.
Proof.
case=> -[Hf Ho] Hl g h i j ai aj ji; rewrite leqNgt; apply/negP => Hlt.
case: (g =P h) => [E|/eqP gh]; first by move: Hlt; rewrite E; lia.
have Hf' := feasible_exchanged ai aj Hf.
have Hc := exchanged_costs_no_more ai aj gh Hlt ji.
have Ho' : optimal p (exchanged a i j) by split=> // a2 /Ho; apply: leq_trans.
by have := Hl _ Ho'; rewrite (exchanged_lexless ai aj gh Hlt ji).
Qed.

(** So is an optimum with the least sum of squared loads. *)
Theorem least_squares_exchange_stable (W R : finType) (p : problem W R) (a : assignment W R) : optimal p a ->
  (forall a', optimal p a' -> \sum_g load p a g ^ 2 <= \sum_g load p a' g ^ 2) -> exchange_stable p a.
Proof.
case=> Hf Ho Hsq g h i j ai aj ji; rewrite leqNgt; apply/negP => Hlt.
case: (g =P h) => [E|/eqP gh]; first by move: Hlt; rewrite E; lia.
have Hf' := feasible_exchanged ai aj Hf.
have Ho' : optimal p (exchanged a i j).
  by split=> // a2 /Ho; apply: leq_trans; exact: exchanged_costs_no_more ai aj gh Hlt ji.
have := Hsq _ Ho'; rewrite leqNgt => /negP; apply.
rewrite (bigD1 g) //= (bigD1 h) 1?eq_sym //= [X in _ < X](bigD1 g) //= [X in _ < _ + X](bigD1 h) 1?eq_sym //=.
rewrite (eq_bigr (fun k => load p a k ^ 2)); last first.
  by move=> k /andP[k1 k2]; rewrite (load_exchanged_other p ai aj k1 k2).
rewrite !addnA ltn_add2r; move: Hlt ji (load_exchanged_g p ai aj gh) (load_exchanged_h p ai aj gh).
move: (load p a g) (load p a h) (load p (exchanged a i j) g) (load p (exchanged a i j) h) (size p i) (size p j).
move=> x z x' z' u v H1 H2 H3 H4.
have -> : x = x' + (u - v) by lia.
have -> : z' = z + (u - v) by lia.
have : z < x' by lia.
by rewrite -!mulnn; nia.
Qed.
