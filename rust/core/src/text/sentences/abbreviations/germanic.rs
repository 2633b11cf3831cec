//! German, Dutch, Danish, Norwegian, Swedish and Finnish; months of Hungarian as well.

use super::Words;

pub(super) const GERMAN: Words = Words {
    always: "
        Hr Hrn Frl Dr Prof Dipl Ing Mag dipl.-ing dr.-ing dr.med dr.phil dr.jur dr.rer dr.h.c
        rer.nat rer.pol med.dent med.vet z.b d.h i.d.r i.d.f i.v i.a z.t z.zt m.e b.z.w bzw vgl
    ",
    before_name: "
        hr frl dr prof str bspw beisp geb verh gegr ehem ehemal insb insbes vorm nachm sog ggf evtl inkl
        exkl einschl zzgl abzgl allg amtl angebl betr bzgl dt engl frz hg hrsg übers univ abt u.a v.a
        o.a o.ä u.ä s.o s.u u.u Mio Mrd Tsd
    ",
    before_lower: "
        usw usf etc abb abs anm aufl bd bde beil bsp ca dez diff ders dgl ebd eigtl einh entspr
        erg febr gem geogr gesch gest jh jhd jahrh kap kath konz lfd max mrd mtl nachf nr nrn
        okt qkm tabelle teilw tgl tsd u.s.w unverb v.chr n.chr chr verf zit ziff zus zw zzt
        m.b.h mbh e.v n.n u.v.m u.v.a
    ",
    before_number: "s art pos mind nov jan jun jul bl Mo Di Mi Do Fr Sa So",
    units: "std min sek stck stk mio mrd tsd lit qm",
    starters: "
        der die das den dem ein eine einen einem einer er sie es wir ihr ich du man dies diese
        dieser dieses jene dann danach doch aber und oder denn weil wenn als ob dass so auch nun
        jetzt heute gestern morgen hier dort da dabei damit daher deshalb darum trotzdem zudem
        außerdem leider vielleicht später zuerst schließlich nach vor seit bei mit im am zum
        zur für auf aus über unter wie was wer wo wann warum welche kein keine nein ja bitte danke
        mein meine sein seine unser unsere alle viele einige manche nur noch schon sehr
    ",
    labels: "plan teil typ gruppe klasse abschnitt punkt vitamin hepatitis anhang kapitel",
    months: "
        januar jänner februar feber märz april mai juni juli august september oktober november
        dezember jan feb mär apr jun jul aug sep sept okt nov dez jahrhundert jahrhunderts
        jahrtausend weltkrieg weltkriegs
    ",
};

pub(super) const DUTCH: Words = Words {
    always: "
        Dhr Mevr Mw Mej Drs Ir Ing bijv m.b.t d.w.z m.a.w o.a i.p.v i.v.m t.a.v t.o.v o.l.v n.a.v
        zgn m.n
    ",
    before_name: "dhr mevr mw drs ds jhr jkvr bv nl",
    before_lower: "
        enz e.d e.a blz nr nrs afb hfst hst jl mnd a.u.b s.v.p p.p p.st k.k febr okt
    ",
    before_number: "art pag",
    units: "",
    starters: "
        het een hij zij ze wij we jullie ik dit dat deze er maar en of dus want toen daarna
        dan nu vandaag gisteren morgen hier daar ook niet geen wat wie waar wanneer waarom hoe
        als omdat terwijl na voor met op
    ",
    labels: "deel groep klas vitamine",
    months: "",
};

pub(super) const NORDIC: Words = Words {
    always: "f.eks bl.a t.ex d.v.s dvs esim",
    before_name: "hr fr jf jfr evt ev skt ks vrt huom ent ns ts",
    before_lower: "
        osv o.s.v m.m m.v m.fl m.h.t mht ca kl nr st pkt inkl ekskl exkl eks resp årh årg gl
        f.n f.d f.kr e.kr febr okt tlf jne ym yms klo nro puh mm ma
    ",
    before_number: "s jan",
    units: "kr mia mio mill mrd milj stk st tkr",
    starters: "
        han hun hon vi jeg jag du dette denne disse men og och eller så då dær
        her här på hvis om når när efter etter før innan hän he se me te minä sinä mutta ja
    ",
    labels: "del gruppe grupp klasse klass",
    months: "
        januar februar marts mars april maj mai juni juli august september oktober november
        december desember januari februari augusti jan feb mar apr aug sep sept okt nov dec des
        tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta
        syyskuuta lokakuuta marraskuuta joulukuuta
        január február március április május június július augusztus szeptember október november
        december
    ",
};
