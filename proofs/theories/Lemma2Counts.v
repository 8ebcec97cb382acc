(** * Lemma 2 for counts: the gap after an optimal step with an overloaded pool

    Section 1 of the theorem, in the words of [Counts.v]. With [M] the largest load, worker [g] has the depth [e_g =
    (M - L_g) / q], rounded down (the proof's [d_g] is [e_g + 1]). Suppose that worker [h] is [q (s - 1)] tokens or
    more below [M], and by as much more as the second hypothesis of [core] says.

    (star)   V_h + s + (s - 1) C <= V_g + e_g + 1 + s m,        V_g the volume of worker [g], [m <= c_g <= C].

    Let [b] be the least class on [h] (Case I of the proof is [b = s - 1], Case II all the others). No unadmitted
    request is above [b]; whoever is less than [b] units from the maximum holds nothing above [b]; hence by (star)
    each worker holds at least [b - e_g] requests of class [b]. Summed, and with Definition 1 at class [b], as many
    requests below [b] are unadmitted as the layers [A_d = {g : e_g < d}], [d = 1..b], have members together. So some
    layer can replace a request of class [b] by one of class [b - d] on each of its workers, and the imbalance falls.
    *)
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify.
From LB Require Import Model Extremes Counts.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Lemma2.
Variables (W : finType) (s q : nat) (P c : W -> nat) (p : 'I_s -> nat).
Implicit Types (n : W -> 'I_s -> nat).
Local Notation load := (@cload W s q P).
Local Notation feasible := (cfeasible c p).
Local Notation opt := (@coptimal W s q P c p).

Definition U := \sum_g c g.
Definition coverloaded := forall x : 'I_s, U <= \sum_(y | y != x) p y.
Definition depth n g := (largest (load n) - load n g) %/ q.

(** No exchange of two admitted requests brings both new loads below the larger old one. *)
Definition cstable n := forall g h (a b : 'I_s), b < a -> 0 < n g a -> 0 < n h b ->
  load n g <= load n h + q * (a - b).

Lemma layers b e : \sum_(i < b) (e < b - i) = b - e.
Proof.
elim: b => [|b IH]; first by rewrite big_ord0; lia.
rewrite big_ord_recl /=; under eq_bigr do rewrite /bump /= add1n subSS.
rewrite IH; lia.
Qed.

Lemma layers_below (b : 'I_s) e : \sum_(x < s | x < b) (e < b - x) = b - e.
Proof. rewrite -(layers b e) (big_ord_widen s (fun i => (e < b - i) : nat)) //; have := ltn_ord b; lia. Qed.

Lemma depthP n g : 0 < q -> largest (load n) < load n g + q * (depth n g).+1.
Proof.
move=> q0; have := ltn_ceil (largest (load n) - load n g) q0; rewrite -/(depth n g) mulnC.
have := le_largest (load n) g; lia.
Qed.

Lemma depth_lt n g d : 0 < q -> (depth n g < d) = (largest (load n) - load n g < q * d).
Proof. by move=> q0; rewrite /depth ltn_divLR // mulnC. Qed.

(** Cases I and II at once. *)
Lemma core n h (b : 'I_s) dl m mc : 0 < q -> 1 < s -> coverloaded -> opt n ->
  (forall g k, P g <= P k + dl) -> (forall g, m <= c g <= mc) ->
  load n h + q * s.-1 <= largest (load n) ->
  load n h + q * s.-1 + (dl + q * (s.-1 * mc)) <= largest (load n) + q * (s * m) ->
  (forall x : 'I_s, x < b -> n h x = 0) ->
  (0 < n h b) || (b.+1 == s) ->
  (forall g (x : 'I_s), depth n g < b -> b < x -> n g x = 0) -> False.
Proof.
move=> q0 s1 Hd Hopt HP Hc G1 G2 Hb1 Hb2 Hb3.
have [[H1 H2] Ho] := Hopt.
have bs := ltn_ord b.
have star g : volume n h + s + s.-1 * mc <= volume n g + depth n g + 1 + s * m.
  have HPg := HP g h; have Hdep := depthP n g q0.
  have Eh : load n h = P h + q * volume n h by [].
  have Eg : load n g = P g + q * volume n g by [].
  have : q * (volume n h + s.-1 + s.-1 * mc) < q * (volume n g + (depth n g).+1 + s * m).
    rewrite !mulnDr; move: G2 Hdep; rewrite Eh Eg.
    move: (largest _) (q * s.-1) (q * (s.-1 * mc)) (q * (s * m)) (q * (depth n g).+1) (q * volume n h) (q * volume n g).
    by move=> *; lia.
  rewrite ltn_pmul2l //; lia.
have Vh : b.+1 * m <= volume n h.
  apply: leq_trans (volume_ge Hb1); rewrite H1 leq_mul2l; have := Hc h; lia.
have nb g : b - depth n g <= n g b.
  case: (ltnP (depth n g) b) => Hg; last lia.
  have := volume_le (fun x => Hb3 g x Hg); rewrite H1; have := star g; have /andP[] := Hc g.
  nia.
have full (x : 'I_s) : b < x -> \sum_g n g x = p x.
  move=> bx; apply/eqP; rewrite eqn_leq H2 /= leqNgt; apply/negP => Hx.
  have xs := ltn_ord x.
  apply: (raise_improves q0 Hopt bx _ Hx G1); move: Hb2; case/orP => // /eqP; lia.
have tot : U = \sum_g n g b + \sum_(x | x != b) \sum_g n g x.
  have -> : U = \sum_(x < s) \sum_g n g x.
    by rewrite exchange_big /=; apply: eq_bigr => g _; rewrite H1.
  by rewrite (bigD1 b).
pose u x := p x - \sum_g n g x.
pose A d := [set g | depth n g < d].
have Hu : \sum_g n g b <= \sum_(x < s | x < b) u x.
  have := Hd b; rewrite tot.
  have -> : \sum_(x | x != b) p x = \sum_(x | x != b) \sum_g n g x + \sum_(x | x != b) u x.
    rewrite -big_split /=; apply: eq_bigr => x _; have := H2 x; rewrite /u; lia.
  have : \sum_(x | x != b) u x <= \sum_(x < s | x < b) u x.
    rewrite big_mkcond [X in _ <= X]big_mkcond /=; apply: leq_sum => x _.
    case: (ltngtP x b) => [xb|bx|/val_inj ->]; last by rewrite eqxx.
      by case: ifP.
    by rewrite /u full // subnn; case: ifP.
  lia.
have HA : \sum_(x < s | x < b) #|A (b - x)| <= \sum_g n g b.
  have Hnb : \sum_g (b - depth n g) <= \sum_g n g b by apply: leq_sum => g _.
  apply: leq_trans Hnb.
  have -> : \sum_g (b - depth n g) = \sum_g \sum_(x < s | x < b) (depth n g < b - x).
    by apply: eq_bigr => g _; rewrite layers_below.
  rewrite exchange_big /=; apply: leq_sum => x _.
  by rewrite -sum1_card big_mkcond /=; apply: leq_sum => g _; rewrite inE; case: ifP.
have deep : b <= depth n h.
  rewrite /depth leq_divRL // mulnC; apply: leq_trans (_ : q * s.-1 <= _); last lia.
  by rewrite leq_mul2l; apply/orP; right; lia.
have hA d : d <= b -> h \notin A d by move=> db; rewrite inE; lia.
case: (boolP [exists x : 'I_s, (x < b) && (#|A (b - x)| <= u x)]) => [/existsP[x /andP[xb Hx]]|].
  apply: (@drop_improves _ _ _ _ _ _ (A (b - x)) b x (b - x) h n q0 Hopt) => //.
  - lia.
  - lia.
  - move=> g; rewrite inE => Hg; have := nb g; lia.
  - move: Hx; rewrite /u; have := H2 x; case: (posnP #|A (b - x)|) => [->|]; lia.
  - by move=> g; rewrite inE depth_lt.
  - by apply: hA; lia.
rewrite negb_exists => /forallP Hno.
have b0 : 0 < b.
  rewrite lt0n; apply/eqP => b0; move: Hu; rewrite [X in _ <= X]big_pred0; last by move=> x /=; rewrite b0 ltn0.
  case/orP: Hb2 => [Hb|/eqP]; last lia.
  by rewrite (bigD1 h) //=; lia.
have: \sum_(x < s | x < b) (u x).+1 <= \sum_(x < s | x < b) #|A (b - x)|.
  apply: leq_sum => x xb; have := Hno x; rewrite xb /=; lia.
have -> : \sum_(x < s | x < b) (u x).+1 = \sum_(x < s | x < b) u x + \sum_(x < s | x < b) 1.
  by rewrite -big_split /=; apply: eq_bigr => x _; rewrite addn1.
have : 0 < \sum_(x < s | x < b) 1.
  by rewrite (bigD1 (Ordinal (leq_ltn_trans (leq0n b) bs))).
move: (\sum_(x < s | x < b) 1) => one one0 H3.
have := leq_trans H3 (leq_trans HA Hu); lia.
Qed.

(** Part (i): exchange-stable optima. *)
Theorem counts_stable n dl m mc : 0 < q -> 1 < s -> coverloaded -> opt n -> cstable n ->
  (forall g k, P g <= P k + dl) -> (forall g, m <= c g <= mc) ->
  forall g h, load n g < load n h + q * s.-1 + (dl + q * (s.-1 * mc) - q * (s * m)).
Proof.
move=> q0 s1 Hd Hopt Hst HP Hc g0 h; rewrite ltnNge; apply/negP => Hv.
have M0 := le_largest (load n) g0.
have G1 : load n h + q * s.-1 <= largest (load n) by lia.
have G2 : load n h + q * s.-1 + (dl + q * (s.-1 * mc)) <= largest (load n) + q * (s * m) by lia.
have [b [Hb1 Hb2]] := @least_class W s n h (ltnW s1).
apply: (core q0 s1 Hd Hopt HP Hc G1 G2 Hb1 Hb2) => g x Hg bx.
apply/eqP; rewrite -leqn0 leqNgt; apply/negP => Hx.
have xs := ltn_ord x.
have hb : 0 < n h b by case/orP: Hb2 => // /eqP; lia.
have := Hst g h x b bx Hx hb.
have := depthP n g q0.
have E : q * s.-1 = q * (s.-1 - b) + q * b by rewrite -mulnDr; congr (q * _); lia.
have : q * (x - b) <= q * (s.-1 - b) by rewrite leq_mul2l; apply/orP; right; lia.
have : q * (depth n g).+1 <= q * b by rewrite leq_mul2l; apply/orP; right; lia.
lia.
Qed.

(** Part (ii): every optimum, where the largest class is plentiful. *)
Theorem counts_plentiful n dl m mc : 0 < q -> 1 < s -> coverloaded -> opt n ->
  (forall x : 'I_s, x.+1 = s -> U <= p x) ->
  (forall g k, P g <= P k + dl) -> (forall g, m <= c g <= mc) ->
  forall g h, load n g < load n h + q * s.-1 + (dl + q * (s.-1 * mc) - q * (s * m)).
Proof.
move=> q0 s1 Hd Hopt Hs HP Hc g0 h; rewrite ltnNge; apply/negP => Hv.
have M0 := le_largest (load n) g0.
have G1 : load n h + q * s.-1 <= largest (load n) by lia.
have G2 : load n h + q * s.-1 + (dl + q * (s.-1 * mc)) <= largest (load n) + q * (s * m) by lia.
have [b [Hb1 Hb2]] := @least_class W s n h (ltnW s1).
suff bs : b.+1 = s.
  by apply: (core q0 s1 Hd Hopt HP Hc G1 G2 Hb1 Hb2) => g x _; have := ltn_ord x; lia.
case/orP: Hb2 => [Hb|/eqP//]; apply/eqP; rewrite eqn_leq ltn_ord /= leqNgt; apply/negP => bs.
have sl : s.-1 < s by lia.
pose t := Ordinal sl; have bt : b < t by rewrite /=; lia.
apply: (raise_improves q0 Hopt bt Hb _ G1).
apply: leq_trans (Hs t _); last by rewrite /=; lia.
rewrite /U; have [[H1 _] _] := Hopt; under [X in _ < X]eq_bigr do rewrite -H1.
rewrite (bigD1 h) //= [X in _ < X](bigD1 h) //= -addSn; apply: leq_add.
  rewrite (bigD1 t) //= (bigD1 b) /=; last by apply/eqP => /(congr1 val) /=; lia.
  lia.
apply: leq_sum => g _; by rewrite (bigD1 t) //= leq_addr.
Qed.

End Lemma2.
