//! English.

use super::Words;

pub(super) const ENGLISH: Words = Words {
    always: "
        mr mrs ms mx dr prof messrs mlle mme hon rev fr msgr insp supt sgt cpl capt cmdr
        e.g i.e eg ie cf viz vs v.s fig figs eq eqs
    ",
    before_name: "
        st ste mt ft gen lt col maj adm gov sen rep pres pvt amb brig cdr cpt dep det esq
        sr jr bros univ dept no.s approx ca circa esp incl al a.k.a aka d.b.a
        ph.d u.s u.k u.n e.u u.s.a u.s.s.r d.c l.a n.y
    ",
    before_lower: "
        no nos p pp pg para par sec sect ch chap vol vols ed eds ex trans repr art cl col app ref refs
        etc inc ltd co corp plc llc llp assn assoc ave blvd rd ln hwy sq apt bldg rm
        ext tel dist max min avg temp hr hrs mins secs wk wks yr yrs mo mos
        jan feb mar apr jun jul aug sep sept oct nov dec
        mon tue tues wed thu thur thurs fri sat
        oz lb lbs in. kg cm mm km mi ml sq cu gal qt pt tsp tbsp mph kph
        a.m p.m am. pm. a.d b.c b.c.e c.e m.d b.a m.a b.s m.s m.b.a j.d d.d.s r.n
        p.s n.b q.v w.r.t r.s.v.p t.b.a t.b.d
        abbr adj adv anon attn biog bib cont contd def deg e.t.c encl est excl freq ibid id illus
        intro introd lang lib lit loc misc mfg mgr mgmt n.d obj op org orig oxf pl pref prelim
        prob prop pseud pub publ resp ret rev. sing sub subj suppl syn usu var viz. w.o
        admin assoc asst cert coll comm conf dir div exec govt hosp inst intl natl tech
        approx. calif colo conn fla ill ind kan mass mich minn neb nev okla oreg penn tenn tex
        wash wis wyo
    ",
    starters: "
        the this that these those there then thus he she it we they you i my his her its our their
        your a an in at on by for from with without as if when while where why what who whom whose
        which how after before because since until although though unless once and but or so nor yet
        however also moreover furthermore therefore hence meanwhile otherwise instead is are was were
        am do does did has have had can could will would shall should may might must not no yes
        some many most all each every both another any few several such one two three
        today yesterday tomorrow now later next finally first second third last let let's here
        please thanks ok okay maybe perhaps everyone everybody someone nobody nothing
        during between under over about into only even just still never always often sometimes
    ",
    months: "",
};
