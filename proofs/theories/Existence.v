(** * A leximax optimum exists

    There is a feasible assignment as soon as no more requests have to be admitted than can be; there are finitely many
    assignments; so one of them costs least, and among those one has the lexicographically least sorted loads. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model SortedLoads Realise.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** A strict order has a minimal element in every nonempty finite set. *)
Lemma minimal_element (T : finType) (lt : rel T) (A : {set T}) (x : T) :
  irreflexive lt -> transitive lt -> x \in A -> exists2 y, y \in A & forall z, z \in A -> ~~ lt z y.
Proof.
move=> irr tr; move: {2}#|_| (leqnn #|[set z in A | lt z x]|) => m.
elim: m x => [|m IH] x Hm xA.
  exists x => // z zA; apply/negP => zx; move: Hm; rewrite leqn0 cards_eq0 => /eqP/setP/(_ z).
  by rewrite !inE zA zx.
case: (pickP [pred z in A | lt z x]) => [z /andP[/= zA zx]|H]; last first.
  by exists x => // z zA; apply/negP => zx; have := H z; rewrite /= zA zx.
apply: (IH z) => //; rewrite -ltnS; apply: leq_trans Hm; apply: proper_card; apply/properP; split.
  by apply/subsetP => y; rewrite !inE => /andP[-> /tr]; apply.
by exists z; rewrite !inE zA ?zx // irr.
Qed.

Section Existence.
Variables (W R : finType) (p : problem W R).

Lemma choose_subset (C : {set R}) (D : {set R}) k : D \subset C -> #|D| <= k <= #|C| ->
  exists B : {set R}, [/\ D \subset B, B \subset C & #|B| = k].
Proof.
move=> DC /andP[Dk kC].
have HCD : #|C :\: D| = #|C| - #|D| by rewrite cardsD (setIidPr DC).
have : k - #|D| <= #|C :\: D| by lia.
case/card_geqP=> r [ur sr subr]; exists (D :|: [set x in r]); split; first exact: subsetUl.
  by rewrite subUset DC; apply/subsetP => x; rewrite inE => /subr; rewrite inE => /andP[].
rewrite cardsU disjoint_setI0 ?cards0 ?subn0; last first.
  by rewrite disjoint_sym disjoint_subset; apply/subsetP => x; rewrite !inE => /subr; rewrite inE => /andP[].
by rewrite [X in _ + X]cardsE (card_uniqP ur) sr; lia.
Qed.

(** Slots enough for [k] requests are filled by [k] requests. *)
Lemma share_slots (c : W -> nat) k : k <= \sum_g c g ->
  exists2 m : W -> nat, forall g, m g <= c g & \sum_g m g = k.
Proof.
elim: k => [|k IH] Hk; first by exists (fun=> 0) => //; rewrite big1.
have [|m Hm Hs] := IH; first lia.
case: (pickP (fun g => m g < c g)) => [g Hg|H]; last first.
  have : \sum_g c g <= \sum_g m g by apply: leq_sum => g _; have := H g; lia.
  by lia.
exists (fun h => m h + (h == g)) => [h|].
  by case: eqP => [->|_] /=; [lia | have := Hm h; lia].
rewrite big_split /= Hs (bigD1 g) //= eqxx big1 ?addn0; first lia.
by move=> h /negbTE ->.
Qed.

Theorem feasible_exists : #|[set i | must p i]| <= num_admitted p -> exists a, feasible p a.
Proof.
move=> Hm.
have [||B [DB _ cB]] := @choose_subset setT [set i | must p i] (num_admitted p).
- exact: subsetT.
- by rewrite Hm cardsT geq_minl.
have [|m Hle Hs] := @share_slots (slots p) (num_admitted p); first exact: geq_minr.
have [|f Hf] := @share_out W R m B; first by rewrite Hs cB.
exists [ffun i => if i \in B then f i else None].
have Hon g : #|on [ffun i => if i \in B then f i else None] g| = m g.
  by rewrite -Hf; apply: eq_card => i; rewrite !inE ffunE; case: (i \in B) => //=; rewrite ?andbT ?andbF.
have Hsum := sum_over_workers f B.
have full : [set i in B | f i != None] = B.
  apply/eqP; rewrite eqEcard; apply/andP; split; first by apply/subsetP => i; rewrite inE => /andP[].
  by rewrite -Hsum cB -Hs; apply: leq_sum => g _; rewrite Hf.
apply/and3P; split.
- by apply/forallP => g; rewrite Hon.
- apply/eqP; rewrite -cB -{2}full; apply: eq_card => i; rewrite !inE ffunE.
  by case: (i \in B).
apply/forallP => i; apply/implyP => mi; rewrite ffunE.
have iB : i \in B by apply: (subsetP DB); rewrite inE.
by rewrite iB; move: iB; rewrite -{1}full inE => /andP[].
Qed.

Theorem optimal_exists : #|[set i | must p i]| <= num_admitted p -> exists a, optimal p a.
Proof.
case/feasible_exists => a0 Ha0.
by case: (@arg_minnP _ a0 (feasible p) (cost p) Ha0) => a Ha Hmin; exists a.
Qed.

Theorem leximax_exists : #|[set i | must p i]| <= num_admitted p -> exists a, leximax p a.
Proof.
case/optimal_exists => a0 [Hf0 Ho0].
pose Opt : {set assignment W R} := [set a | feasible p a & cost p a == cost p a0].
have optE a : a \in Opt -> optimal p a.
  by rewrite inE => /andP[Hf /eqP E]; split=> // a' /Ho0; rewrite E.
have Eopt a : optimal p a -> a \in Opt.
  by case=> Hf Ho; rewrite inE Hf eqn_leq Ho //= Ho0.
pose lt (a b : assignment W R) := lexless (sorted_loads (load p a)) (sorted_loads (load p b)).
have [|||a Ha Hmin] := @minimal_element _ lt Opt a0.
- by move=> a; apply: lexless_irr.
- by move=> b a c; apply: lexless_trans.
- by apply: Eopt.
by exists a; split; [exact: optE | move=> a' /Eopt/Hmin].
Qed.

End Existence.
