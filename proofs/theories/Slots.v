(** * Ceilings by slots: some slot runs many requests one after the other

    Of [j G B + 1] requests some [j + 1] run on one worker, no two of them in the same step: on that worker run more
    than [j B] of them, and no step runs more than [B]. Take the one that ends first. All that share a step with it end
    no sooner, so they run in its last step, and with it they are at most [B]. The others start after it, and the
    argument goes on with them. So a run has at least as many steps as [j + 1] of these requests have together
    ([slot_steps]), and lasts at least as long as they would alone ([slot_time]). In Python: the bound *slot* of
    [lbopt/simulator/ceiling.py]. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes Ceilings.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Slots.
Variables (W R : finType) (T B C t : nat).
Variables (size output start : R -> nat) (worker : R -> W).
Hypothesis ends : forall i, start i + output i <= T.
Hypothesis slots : forall g k, #|runs_on output start worker g k| <= B.
Hypothesis outputs : forall i, 0 < output i.
Implicit Type A Q : {set R}.

Local Notation active := (active output start).
Local Notation finish i := (start i + output i).

(** No two of them share a step. *)
Definition apart Q : Prop := forall i k, i \in Q -> k \in Q -> i != k -> finish i <= start k \/ finish k <= start i.

Lemma chain_on_worker g j A : (forall i, i \in A -> worker i = g) -> j * B < #|A| ->
  exists Q, [/\ Q \subset A, #|Q| = j.+1 & apart Q].
Proof.
elim: j A => [|j IH] A onA HA.
  have /card_gt0P[i iA] := HA; exists [set i]; split; first by rewrite sub1set.
    by rewrite cards1.
  by move=> x y; rewrite !inE => /eqP-> /eqP->; rewrite eqxx.
have /card_gt0P[i0 i0A] : 0 < #|A| by apply: leq_ltn_trans HA.
case: (@arg_minnP _ i0 (mem A) (fun i => finish i) i0A) => i; rewrite -[mem A i]/(i \in A) => iA first.
pose later := [set k in A | finish i <= start k].
have Hsplit : #|A :\: later| <= B.
  apply: leq_trans (slots g (finish i).-1); apply: subset_leq_card; apply/subsetP => k.
  rewrite !inE => /andP[+ kA]; rewrite kA /= -ltnNge => ki; rewrite onA // eqxx /=.
  by have := first _ kA; rewrite /active; move: ki; lia.
have [||Q [QA cQ Qapart]] := IH later.
- by move=> k; rewrite inE => /andP[/onA].
- have := cardsID later A; have -> : A :&: later = later.
    by apply/setP => k; rewrite !inE; case: (k \in A).
  by move: HA Hsplit; rewrite mulSn; lia.
have iQ : i \notin Q.
  by apply/negP => /(subsetP QA); rewrite inE => /andP[_]; have := outputs i; lia.
exists (i |: Q); split.
- by rewrite subUset sub1set iA; apply: subset_trans QA _; apply/subsetP => k; rewrite inE => /andP[].
- by rewrite cardsU1 iQ cQ.
move=> x y; rewrite !inE => /orP[/eqP->|xQ] /orP[/eqP->|yQ]; first by rewrite eqxx.
- by move=> _; left; have /(subsetP QA) := yQ; rewrite inE => /andP[].
- by move=> _; right; have /(subsetP QA) := xQ; rewrite inE => /andP[].
exact: Qapart.
Qed.

(** Pigeonhole: one worker runs more than [j B] of more than [j G B] requests. *)
Lemma crowded_worker j A : j * (#|W| * B) < #|A| -> exists g, j * B < #|[set i in A | worker i == g]|.
Proof.
move=> HA; apply/existsP; rewrite -[[exists _, _]]negbK negb_exists; apply/negP => /forallP Hno.
move: HA; rewrite ltnNge => /negP; apply.
have -> : #|A| = \sum_g #|[set i in A | worker i == g]|.
  rewrite -sum1_card (partition_big worker xpredT) //=; apply: eq_bigr => g _.
  by rewrite -sum1_card; apply: eq_bigl => i; rewrite !inE.
rewrite mulnCA -sum_nat_const; apply: leq_sum => g _; rewrite leqNgt; exact: Hno.
Qed.

Lemma slot_chain j A : j * (#|W| * B) < #|A| -> exists Q, [/\ Q \subset A, #|Q| = j.+1 & apart Q].
Proof.
case/crowded_worker=> g Hg.
have [i|Q [QA cQ Qapart]] := @chain_on_worker g j _ _ Hg; first by rewrite inE => /andP[_ /eqP].
by exists Q; split=> //; apply: subset_trans QA _; apply/subsetP => i; rewrite inE => /andP[].
Qed.

(** What requests that are apart ask of the steps in which they run, they ask of different steps. *)
Lemma apart_sum Q (F : R -> nat -> nat) (S : nat -> nat) : apart Q ->
  (forall i k, active i k -> F i (k - start i) <= S k) ->
  \sum_(i in Q) \sum_(age < output i) F i age <= \sum_(k < T) S k.
Proof.
move=> HQ HF; rewrite (eq_bigr (fun i => \sum_(k < T | active i k) F i (k - start i))); last first.
  by move=> i _; rewrite (over_active ends i (F i)).
rewrite (exchange_big_dep xpredT) //=; apply: leq_sum => k _.
case: (pickP [pred i | (i \in Q) && active i k]) => [i /andP[iQ ik]|none]; last first.
  by rewrite big_pred0 // => i; apply: none.
rewrite (bigD1 i) /=; last by rewrite iQ ik.
rewrite big1 ?addn0 => [|x /andP[/andP[xQ xk] xi]]; first exact: HF.
by have := HQ _ _ xQ iQ xi; move: ik xk; rewrite /Ceilings.active; lia.
Qed.

(** The number of steps. With [A] the [j G B + 1] longest outputs, the right side is at least their [j + 1] least. *)
Theorem slot_steps j A : j * (#|W| * B) < #|A| ->
  exists Q, [/\ Q \subset A, #|Q| = j.+1 & \sum_(i in Q) output i <= steps T output start].
Proof.
case/slot_chain=> Q [QA cQ Qapart]; exists Q; split=> //.
have H := @apart_sum Q (fun _ _ => 1) (fun k => busy output start k) Qapart _.
rewrite (eq_bigr (fun i => \sum_(age < output i) 1)); last by move=> i _; rewrite sum1_ord.
by apply: H => i k ik; rewrite lt0b; apply/existsP; exists i.
Qed.

(** The seconds: what these requests would take alone, one after the other. *)
Theorem slot_time j A : j * (#|W| * B) < #|A| ->
  exists Q, [/\ Q \subset A, #|Q| = j.+1 &
    \sum_(i in Q) (C * output i + t * work_of size output i) <= run_time T C t size output start worker].
Proof.
case/slot_chain=> Q [QA cQ Qapart]; exists Q; split=> //.
rewrite (eq_bigr (fun i => \sum_(age < output i) (C + t * (size i + age)))); last first.
  by move=> i _; rewrite big_split /= sum_nat_const card_ord mulnC -big_distrr.
apply: (@apart_sum Q (fun i age => C + t * (size i + age)) (step_time C t size output start worker)) => // i k ik.
rewrite /step_time; have -> : busy output start k by apply/existsP; exists i.
rewrite leq_add2l leq_mul2l; apply/orP; right; apply: leq_trans (le_largest _ (worker i)).
by rewrite /run_load (bigD1 i) /= ?leq_addr // inE eqxx.
Qed.
End Slots.
