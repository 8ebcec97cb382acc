(** * Ceilings that no rule can pass

    A whole run: request [i] has [size i] tokens of prompt and runs [output i] steps, from step [start i] on, on one
    worker, without pause. Before growth it holds [size i + age] tokens. A step that runs nothing takes no time; any
    other takes [C + t * (largest load)]. Whatever the rule, and whatever it knows of the future, the run of [K] steps
    lasts

      [C K + (t / G) (Work + sum of imbalances) >= C K + (t / G) Work],

    with [Work = sum_i sum_(age < output i) (size i + age)],

    with [K] at least the longest output and at least [(sum of outputs) / (G B)]. *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Run.
Variables (W R : finType) (T B C t : nat).
Variables (size output start : R -> nat) (worker : R -> W).

Definition active (i : R) (k : nat) : bool := start i <= k < start i + output i.
Definition runs_on (g : W) (k : nat) : {set R} := [set i | (worker i == g) && active i k].
Definition run_load (k : nat) (g : W) : nat := \sum_(i in runs_on g k) (size i + (k - start i)).
Definition busy (k : nat) : bool := [exists i, active i k].

(** What a request contributes over its whole run. *)
Definition work_of (i : R) : nat := \sum_(age < output i) (size i + age).
Definition work : nat := \sum_i work_of i.
Definition steps : nat := \sum_(k < T) busy k.
Definition step_time (k : nat) : nat := if busy k then C + t * largest (run_load k) else 0.
Definition run_time : nat := \sum_(k < T) step_time k.

(** The run is over at step [T], and no worker runs more than [B] requests. *)
Hypothesis ends : forall i, start i + output i <= T.
Hypothesis slots : forall g k, #|runs_on g k| <= B.

Lemma total_load_step k : \sum_g run_load k g = \sum_(i | active i k) (size i + (k - start i)).
Proof.
rewrite /run_load (exchange_big_dep (fun i => active i k)) /=; last by move=> g i _; rewrite inE => /andP[].
apply: eq_bigr => i Hi; rewrite (bigD1 (worker i)) /=; last by rewrite inE eqxx Hi.
by rewrite big1 ?addn0 // => g /andP[]; rewrite inE => /andP[/eqP-> _]; rewrite eqxx.
Qed.

(** Sum over the steps in which a request is active. *)
Lemma over_active i (F : nat -> nat) : \sum_(k < T | active i k) F (k - start i) = \sum_(age < output i) F age.
Proof.
rewrite -(big_mkord (active i) (fun k => F (k - start i))) -(big_mkord xpredT F).
rewrite (big_cat_nat _ _ _ (leq0n (start i))) /=; last by apply: leq_trans (ends i); apply: leq_addr.
rewrite big_nat_cond big_pred0 ?add0n; last first.
  by move=> k; rewrite /active; case: (ltnP k (start i)) => /=; rewrite ?andbF // leqNgt => ->.
rewrite (big_cat_nat _ _ _ (leq_addr (output i) (start i)) (ends i)) /=.
rewrite [X in _ + X]big_nat_cond [X in _ + X]big_pred0 ?addn0; last first.
  by move=> k; rewrite /active; case: (leqP (start i + output i) k) => //= H; rewrite ?andbF // ltnNge H andbF.
rewrite big_mkcond /= (eq_big_nat _ _ (F2 := fun k => F (k - start i))); last by move=> k; rewrite /active => ->.
rewrite -{1}[start i]add0n big_addn addKn.
by apply: eq_bigr => k _; rewrite addnK.
Qed.

(** The work of a run does not depend on the rule: the loads of all workers and steps add up to it. *)
Theorem work_invariant : \sum_(k < T) \sum_g run_load k g = work.
Proof.
rewrite /work (eq_bigr (fun k : 'I_T => \sum_(i | active i k) (size i + (k - start i)))); last first.
  by move=> k _; apply: total_load_step.
rewrite (exchange_big_dep xpredT) //=; apply: eq_bigr => i _.
exact: (over_active i (fun age => size i + age)).
Qed.

Lemma idle_load k : ~~ busy k -> largest (run_load k) = 0.
Proof.
rewrite negb_exists => /forallP H; apply/eqP; rewrite -leqn0; apply: largest_le => g.
by rewrite /run_load big_pred0 // => i; rewrite inE (negbTE (H i)) andbF.
Qed.

(** G * time = G C K + t (work + sum of the imbalances), exactly. *)
Theorem run_time_identity :
  #|W| * run_time = #|W| * C * steps + t * (work + \sum_(k < T) imbalance (run_load k)).
Proof.
rewrite -work_invariant -big_split /= /steps /run_time !big_distrr -big_split /=; apply: eq_bigr => k _.
have E : \sum_g run_load k g + imbalance (run_load k) = #|W| * largest (run_load k).
  rewrite /imbalance subnKC // -sum_nat_const; apply: leq_sum => g _; exact: le_largest.
rewrite E /step_time; case: (boolP (busy k)) => [_|/idle_load->]; last by rewrite !muln0.
by rewrite muln1 mulnDr; congr addn; rewrite mulnCA.
Qed.

(** The ceiling: no run is shorter. *)
Corollary run_time_floor : #|W| * C * steps + t * work <= #|W| * run_time.
Proof. by rewrite run_time_identity mulnDr addnA leq_addr. Qed.

Lemma sum1_ord n : \sum_(k < n) 1 = n.
Proof. by rewrite big_const_ord iter_addn_0 mul1n. Qed.

(** There are at least as many steps as the longest output has, and as the slots need for all of them. *)
Theorem steps_longest i : output i <= steps.
Proof.
have := over_active i (fun=> 1); rewrite sum1_ord => <-.
rewrite /steps big_mkcond /=; apply: leq_sum => k _; case: ifP => // Hk.
by rewrite lt0b; apply/existsP; exists i.
Qed.

Theorem steps_slots : \sum_i output i <= #|W| * B * steps.
Proof.
rewrite (eq_bigr (fun i => \sum_(k < T | active i k) 1)); last first.
  by move=> i _; rewrite (over_active i (fun=> 1)) sum1_ord.
rewrite (exchange_big_dep xpredT) //= /steps big_distrr /=; apply: leq_sum => k _.
case: (boolP (busy k)) => Hk; last first.
  by rewrite big_pred0 // => i; apply/negbTE; move: Hk; rewrite negb_exists => /forallP/(_ i).
rewrite muln1 -sum_nat_const; apply: leq_trans (_ : \sum_g #|runs_on g k| <= _); last exact: leq_sum.
rewrite (eq_bigr (fun g => \sum_(i in runs_on g k) 1)) => [|g _]; last by rewrite sum1_card.
rewrite (exchange_big_dep (fun i => active i k)) /=; last by move=> g i _; rewrite inE => /andP[].
by apply: leq_sum => i Hi; rewrite (bigD1 (worker i)) //= inE eqxx Hi.
Qed.

(** The ceiling in the numbers of the requests alone: [K] of them is any lower bound on the number of steps. *)
Corollary run_time_floor_requests K :
  (K <= \max_i output i \/ #|W| * B * K < \sum_i output i + #|W| * B) -> #|W| * C * K + t * work <= #|W| * run_time.
Proof.
move=> HK; apply: leq_trans run_time_floor; rewrite leq_add2r leq_mul2l; apply/orP; right.
case: HK => HK; first by apply: leq_trans HK _; apply/bigmax_leqP => i _; apply: steps_longest.
have := steps_slots; case: (posnP (#|W| * B)) => [E|WB0] Hs; first by move: HK Hs; rewrite E !mul0n addn0; lia.
rewrite -ltnS -(ltn_pmul2l WB0) mulnS; lia.
Qed.

End Run.
