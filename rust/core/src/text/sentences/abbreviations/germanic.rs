//! German, Dutch, Danish, Norwegian and Swedish.

use super::Words;

pub(super) const GERMAN: Words = Words {
    always: "
        hr hrn fr frl dr prof dipl ing mag med habil phil jur rer nat h.c
        z.b d.h u.a v.a i.d.r i.d.f i.v i.a o.a o.ä s.o s.u z.t z.zt u.u m.e u.ä b.z.w bzw vgl
        sog usf. gem lt ggf evtl inkl exkl einschl zzgl abzgl
    ",
    before_name: "
        st str bspw beisp geb gest verh verw gen gegr ehem ehemal insb insbes bes vorm nachm
        allg amtl angebl auszugsw betr bzgl dgl dt franz engl frz lat griech ital span russ
        hg hrsg red übers univ abt b.a m.a
    ",
    before_lower: "
        usw etc ff abb abs anm art aufl bd bde beil ber best bl bsp ca chr dez diff ders dies
        ebd eigtl einh entspr erg erw feb fn folg fortl geogr gesch gest jan jh jhd jahrh jul jun
        kap kath konz lfd lit mär max mind min mio mrd mtl nachf nov nr nrn okt pl pos priv
        ptas qkm reg s sa sek sept sep so std stck stk tab teilw tel tgl tsd u.s.w unverb
        v.chr n.chr verf vers zit ziff zus zw zzt do di mi mo m.b.h mbh e.v a.d a.d.r s.a n.n
    ",
    starters: "
        der die das den dem ein eine einen einem einer er sie es wir ihr ich du man dies diese
        dieser dieses jene dann danach doch aber und oder denn weil wenn als ob dass so auch nun
        jetzt heute gestern morgen hier dort da dabei damit daher deshalb darum trotzdem zudem
        außerdem leider vielleicht später zuerst schließlich nach vor seit bei mit von im am zum
        zur für auf aus über unter wie was wer wo wann warum welche kein keine nein ja bitte danke
        mein meine sein seine unser unsere alle viele einige manche nur noch schon sehr
    ",
    months: "
        januar jänner februar feber märz april mai juni juli august september oktober november
        dezember jan feb mär apr jun jul aug sep sept okt nov dez jahrhundert jahrhunderts
        jahrtausend weltkrieg weltkriegs
    ",
};

pub(super) const DUTCH: Words = Words {
    always: "
        dhr mevr mw mej drs ir ing mr prof dr bijv bv m.b.t d.w.z m.a.w o.a i.p.v i.v.m t.a.v t.o.v
        o.l.v n.a.v t/m vgl zgn nl m.n
    ",
    before_name: "st ds pr jhr jkvr mgr wed sint",
    before_lower: "
        enz e.d e.a blz pag nr nrs art afb hfst hst jl ca max min excl incl resp tel aug dec febr jan
        okt sept mnd gem v.chr n.chr a.u.b s.v.p p.p p.st k.k
    ",
    starters: "
        de het een hij zij ze wij we jullie ik dit dat deze die er maar en of dus want toen daarna
        dan nu vandaag gisteren morgen hier daar ook niet geen wat wie waar wanneer waarom hoe
        als omdat terwijl na voor met op in
    ",
    months: "",
};

pub(super) const NORDIC: Words = Words {
    always: "f.eks bl.a t.ex d.v.s dvs bl m.fl jf jfr hr fru fr kand adj lic",
    before_name: "skt s:t",
    before_lower: "
        osv o.s.v m.m m.v m.h.t mht ca kl nr s st pkt kr mio mia mill mrd inkl ekskl exkl
        eks ev evt event f.n f.d f.kr e.kr jan febr okt tlf tel resp ung årh årg gl
    ",
    starters: "
        den det de han hun hon vi jeg jag du dette denne disse men og och eller så da då der dær
        her här i på hvis om når når efter etter før innan
    ",
    months: "
        januar februar marts mars april maj mai juni juli august september oktober november
        december desember januari februari augusti
        tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta
        syyskuuta lokakuuta marraskuuta joulukuuta
        január február március április május június július augusztus szeptember október november
        december
    ",
};
