(** * From counts back to requests

    Counts that ask for no more requests of a class than wait are the counts of some assignment. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** The requests of a set that workers hold, worker by worker. *)
Lemma sum_over_workers (W R : finType) (f : R -> option W) (C : {set R}) :
  \sum_g #|[set i in C | f i == Some g]| = #|[set i in C | f i != None]|.
Proof.
rewrite -sum1_card; under eq_bigr do rewrite -sum1_card.
rewrite (exchange_big_dep (mem [set i in C | f i != None])) /=.
  apply: eq_bigr => i; rewrite inE => /andP[iC]; case E: (f i) => [g|//] _.
  rewrite (bigD1 g) /=; last by rewrite inE iC E eqxx.
  rewrite big1 ?addn0 // => h /andP[]; rewrite inE iC E /= => /eqP[->]; by rewrite eqxx.
by move=> g i _; rewrite !inE => /andP[-> /eqP->].
Qed.

Section Realise.
Variables (W R : finType).

(** Disjoint subsets of given sizes, for the workers of a list. *)
Lemma share_out_list (m : W -> nat) (l : seq W) (C : {set R}) : uniq l -> \sum_(g <- l) m g <= #|C| ->
  exists f : R -> option W,
    (forall g, g \in l -> #|[set i in C | f i == Some g]| = m g) /\ (forall i g, f i = Some g -> g \in l).
Proof.
elim: l C => [|k l IH] C /=; first by exists (fun=> None).
case/andP=> kl ul; rewrite big_cons => Hs.
have : m k <= #|C| by lia.
case/card_geqP=> r [ur sr subr]; pose B := [set x in r].
have BC : B \subset C by apply/subsetP => x; rewrite inE; apply: subr.
have cB : #|B| = m k by rewrite cardsE -sr; apply/card_uniqP.
have HCB : #|C :\: B| = #|C| - m k by rewrite cardsD (setIidPr BC) cB.
have [||f [f1 f2]] := IH (C :\: B) => //; first by rewrite HCB; lia.
exists (fun i => if i \in B then Some k else f i); split=> [g|i g]; last first.
  by case: ifP => _; [case=> ->; rewrite mem_head | move/f2; rewrite inE => ->; rewrite orbT].
rewrite inE => /orP[/eqP->|gl].
  rewrite -cB; apply: eq_card => i; rewrite inE; case: (boolP (i \in B)) => [iB|_].
    by rewrite eqxx andbT; apply: (subsetP BC).
  by rewrite andbC; case: eqP => //= /f2 kl'; move: kl; rewrite kl'.
have kg : (Some k == Some g) = false by apply/eqP => -[E]; move: kl; rewrite E gl.
by rewrite -(f1 _ gl); apply: eq_card => i; rewrite !inE; case: (i \in r) => //=; rewrite kg andbF.
Qed.

Lemma share_out (m : W -> nat) (C : {set R}) : \sum_g m g <= #|C| ->
  exists f : R -> option W, forall g, #|[set i in C | f i == Some g]| = m g.
Proof.
move=> H; have [||f [f1 _]] := @share_out_list m (enum W) C; first exact: enum_uniq.
  by rewrite big_enum.
by exists f => g; apply: f1; rewrite mem_enum.
Qed.

Variables (K : finType) (class : R -> K).

(** How many requests of class [x] an assignment puts on worker [g]. *)
Definition counts (a : assignment W R) (g : W) (x : K) : nat := #|[set i in on a g | class i == x]|.

Theorem realise (n : W -> K -> nat) : (forall x, \sum_g n g x <= #|[set i | class i == x]|) ->
  exists a : assignment W R, forall g x, counts a g x = n g x.
Proof.
move=> H.
have [f Hf] : exists f : K -> R -> option W,
    forall x g, #|[set i in [set i | class i == x] | f x i == Some g]| = n g x.
  apply: (@fin_all_exists K (fun=> R -> option W)
    (fun x f => forall g, #|[set i in [set i | class i == x] | f i == Some g]| = n g x)) => x.
  exact: share_out.
exists [ffun i => f (class i) i] => g x; rewrite -(Hf x g); apply: eq_card => i; rewrite !inE ffunE.
by case: (class i =P x) => [->|_]; rewrite ?andbT ?andbF.
Qed.

End Realise.

(** ** How many requests the workers hold *)
Section Filled.
Variables (W R : finType) (p : problem W R).
Implicit Type a : assignment W R.

Lemma sum_on a : \sum_g #|on a g| = #|admitted a|.
Proof.
rewrite (_ : admitted a = [set i in setT | a i != None]); last by apply/setP => i; rewrite !inE.
by rewrite -sum_over_workers; apply: eq_bigr => g _; apply: eq_card => i; rewrite !inE.
Qed.

(** With at least as many requests as free slots, every slot is filled. *)
Lemma slots_filled a : free_slots p <= #|R| -> feasible p a -> forall g, #|on a g| = slots p g.
Proof.
move=> many /and3P[/forallP H1 /eqP H2 _] g; apply/eqP; rewrite eqn_leq H1 /= leqNgt; apply/negP => Hg.
have : \sum_g #|on a g| < \sum_g slots p g.
  rewrite (bigD1 g) //= [X in _ < X](bigD1 g) //= -addSn; apply: leq_add => //; exact: leq_sum.
by rewrite sum_on H2 /num_admitted (minn_idPr many) ltnn.
Qed.

(** With at most as many, everybody is admitted. *)
Lemma all_admitted a : #|R| <= free_slots p -> feasible p a -> admitted a = setT.
Proof.
move=> few /and3P[_ /eqP H2 _]; apply/eqP; rewrite eqEcard subsetT cardsT H2 /num_admitted (minn_idPl few).
by rewrite /= leqnn.
Qed.

End Filled.
