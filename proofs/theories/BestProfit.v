(** * The best profit of [c] requests that fit into a room

    The checker of certificates asks: of all sets of exactly [c] requests of total size at most [r], at most so many
    of each class, which has the largest profit? A table answers from above. Row [c] is a list of points (size,
    profit) such that every set of [c] requests is dominated by one of them: no larger, and no less profit. Requests
    enter one after another,

      [row c := row c  merged with  (row (c - 1) moved by the request's size and profit)],

    and dominated points are left out. Only soundness is proved, which is all that a lower bound needs: the answer is
    never too small. In Python: [lbopt/solvers/certificates/profits.py], which keeps an entry for every size
    instead. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** Sum over a list. *)
Definition zsum (T : Type) (F : T -> Z) (s : seq T) : Z := foldr (fun x z => (F x + z)%Z) 0%Z s.

Lemma zsum_cat (T : Type) (F : T -> Z) s t : zsum F (s ++ t) = (zsum F s + zsum F t)%Z.
Proof. by elim: s => [|x s IH] //=; rewrite IH; lia. Qed.

Lemma zsum_rem (T : eqType) (F : T -> Z) (x : T) s : x \in s -> zsum F s = (F x + zsum F (rem x s))%Z.
Proof.
elim: s => [|y s IH] //=; rewrite inE; case: (y =P x) => [->//|yx] /orP[/eqP E|/IH /= ->]; last lia.
by case: yx.
Qed.

Lemma zsum_perm (T : eqType) (F : T -> Z) (s t : seq T) : perm_eq s t -> zsum F s = zsum F t.
Proof.
elim: s t => [|x s IH] t; first by rewrite perm_sym => /perm_nilP->.
move=> Hp; have xt : x \in t by rewrite -(perm_mem Hp) mem_head.
rewrite (zsum_rem F xt) /=; congr (_ + _)%Z; apply: IH.
by rewrite -(perm_cons x); apply: perm_trans Hp (perm_to_rem xt).
Qed.

Lemma zsum_add (T : Type) (F H : T -> Z) s : zsum (fun x => (F x + H x)%Z) s = (zsum F s + zsum H s)%Z.
Proof. by elim: s => [|x s IH] //=; rewrite IH; lia. Qed.

Lemma zsum_ge0 (T : eqType) (F : T -> Z) s : (forall x, x \in s -> (0 <= F x)%Z) -> (0 <= zsum F s)%Z.
Proof.
elim: s => [|x s IH] H //=; have := H x (mem_head x s); have : (0 <= zsum F s)%Z; last lia.
by apply: IH => y ys; apply: H; rewrite inE ys orbT.
Qed.

(** A multiset within another: every element at most as often. *)
Definition within (T : eqType) (t s : seq T) : Prop := forall x, count_mem x t <= count_mem x s.

Lemma within_cons (T : eqType) (x : T) t s : within t (x :: s) ->
  within t s \/ exists2 t', perm_eq t (x :: t') & within t' s.
Proof.
move=> H; case: (boolP (x \in t)) => xt; last first.
  left=> y; have := H y; rewrite /=; case: (x =P y) => [E|_]; last by rewrite add0n.
  by subst y; rewrite (count_memPn xt).
right; exists (rem x t); first exact: perm_to_rem.
by move=> y; have := H y; rewrite (permP (perm_to_rem xt) (pred1 y)) /= leq_add2l.
Qed.

(** ** Rows *)
Definition point := (Z * Z)%type.
Definition row := seq point.

Definition dominates (w p : Z) (e : point) : bool := (e.1 <=? w)%Z && (p <=? e.2)%Z.

Fixpoint merge_rows (r : row) : row -> row :=
  match r with
  | [::] => id
  | a :: r' => fix aux (s : row) : row :=
      match s with
      | [::] => r
      | b :: s' => if (a.1 <=? b.1)%Z then a :: merge_rows r' s else b :: aux s'
      end
  end.

Lemma has_merge P r s : has P (merge_rows r s) = has P r || has P s.
Proof.
elim: r s => [|a r IHr] s //; elim: s => [|b s IHs]; first by rewrite /= orbF.
rewrite /=; case: ifP => _; first by rewrite /= IHr /= orbA.
rewrite [LHS]/= ; by move: IHs => /= ->; case: (P a); case: (P b); case: (has P r); case: (has P s).
Qed.

(** Points dominated by the last one kept are left out. *)
Fixpoint prune (last : point) (r : row) : row :=
  match r with
  | [::] => [::]
  | e :: r' => if (last.1 <=? e.1)%Z && (e.2 <=? last.2)%Z then prune last r' else e :: prune e r'
  end.

Lemma has_prune w p last r : has (dominates w p) (last :: r) -> has (dominates w p) (last :: prune last r).
Proof.
elim: r last => [|e r IH] last //=; case: ifP => [H|_].
  case/or3P=> [->//|He|Hr]; apply: (IH last); rewrite /= ?Hr ?orbT //.
  by apply/orP; left; move: He H; rewrite /dominates; lia.
case/orP=> [->//|H]; apply/orP; right; exact: IH.
Qed.

Definition join (r s : row) : row :=
  match s with
  | [::] => r
  | _ => match merge_rows r s with [::] => [::] | e :: l => e :: prune e l end
  end.

Lemma has_join w p r s : has (dominates w p) r || has (dominates w p) s -> has (dominates w p) (join r s).
Proof.
rewrite /join; case: s => [|b s]; first by rewrite orbF.
by rewrite -has_merge; case: (merge_rows r (b :: s)) => // e l; apply: has_prune.
Qed.

(** All points moved by a request; what is beyond the room is dropped. *)
Definition shift (room v q : Z) (r : row) : row :=
  foldr (fun e l => if (e.1 + v <=? room)%Z then ((e.1 + v)%Z, (e.2 + q)%Z) :: l else l) [::] r.

Lemma has_shift room v q w p r : (w + v <= room)%Z ->
  has (dominates w p) r -> has (dominates (w + v) (p + q)) (shift room v q r).
Proof.
move=> Hroom; elim: r => [|e r IH] //= /orP[He|/IH H]; last by case: ifP => //= _; rewrite H orbT.
have -> : (e.1 + v <=? room)%Z by move: He; rewrite /dominates; lia.
by rewrite /=; apply/orP; left; move: He; rewrite /dominates /=; lia.
Qed.

(** ** The table: rows 0, 1, ..., most *)
Fixpoint enter (room v q : Z) (before : row) (rows : seq row) : seq row :=
  match rows with
  | [::] => [::]
  | r :: rows' => join r before :: enter room v q (shift room v q r) rows'
  end.

Lemma size_enter room v q before rows : size (enter room v q before rows) = size rows.
Proof. by elim: rows before => //= r rows IH before; rewrite IH. Qed.

Lemma nth_enter room v q before rows c : c < size rows ->
  nth [::] (enter room v q before rows) c =
  join (nth [::] rows c) (if c is c'.+1 then shift room v q (nth [::] rows c') else before).
Proof. by elim: rows before c => // r rows IH before [|[|c]] //= H; rewrite IH. Qed.

Section Table.
Variables (K : eqType) (size_of profit_of : K -> Z) (room : Z) (most : nat).

Definition empty_table : seq row := [:: (0%Z, 0%Z)] :: nseq most [::].
Definition table (items : seq K) : seq row :=
  foldr (fun k rows => enter room (size_of k) (profit_of k) [::] rows) empty_table items.

Lemma size_table items : size (table items) = most.+1.
Proof. by elim: items => [|k items IH] /=; rewrite ?size_enter // size_nseq. Qed.

Hypothesis size_ge0 : forall k, (0 <= size_of k)%Z.

Lemma table_sound items t : within t items -> size t <= most -> (zsum size_of t <= room)%Z ->
  has (dominates (zsum size_of t) (zsum profit_of t)) (nth [::] (table items) (size t)).
Proof.
elim: items t => [|k items IH] t Ht Hsize Hroom.
  have -> : t = [::] by case: t Ht {Hsize Hroom} => // x t /(_ x) /=; rewrite eqxx.
  by rewrite /= /dominates /=; lia.
rewrite /= nth_enter ?size_table; last by rewrite ltnS.
apply: has_join; case: (within_cons Ht) => [H|[t' Hp H]]; first by rewrite IH.
apply/orP; right; rewrite (perm_size Hp) !(zsum_perm _ Hp) /=.
have Hs := zsum_perm size_of Hp; have Hk := @size_ge0 k; rewrite /= in Hs.
have -> : (size_of k + zsum size_of t' = zsum size_of t' + size_of k)%Z by lia.
have -> : (profit_of k + zsum profit_of t' = zsum profit_of t' + profit_of k)%Z by lia.
apply: has_shift; first lia.
apply: IH => //; last lia.
by have := perm_size Hp; move: Hsize => /= + E; rewrite E => /ltnW.
Qed.

(** The largest profit within a room that is not larger than the table's. *)
Definition best_in (r : Z) : row -> option Z :=
  foldr (fun e best => if (e.1 <=? r)%Z then Some (if best is Some b then Z.max e.2 b else e.2) else best) None.

Definition best (rows : seq row) (count : nat) (r : Z) : option Z := best_in r (nth [::] rows count).

Lemma best_in_sound w p r e : (w <= r)%Z -> has (dominates w p) e ->
  exists2 b, best_in r e = Some b & (p <= b)%Z.
Proof.
move=> wr; elim: e => [|x e IH] //= /orP[Hx|/IH[b Hb pb]].
  have -> : (x.1 <=? r)%Z by move: Hx; rewrite /dominates; lia.
  by case: (best_in r e) => [b|]; eexists; try reflexivity; move: Hx; rewrite /dominates; lia.
by rewrite Hb; case: ifP => _; eexists; try reflexivity; lia.
Qed.

Lemma best_sound items t r : within t items -> size t <= most -> (zsum size_of t <= r)%Z -> (r <= room)%Z ->
  exists2 b, best (table items) (size t) r = Some b & (zsum profit_of t <= b)%Z.
Proof.
move=> Ht Hs Hr Hroom; have Hw : (zsum size_of t <= room)%Z by lia.
by apply: best_in_sound Hr _; apply: table_sound.
Qed.

End Table.
