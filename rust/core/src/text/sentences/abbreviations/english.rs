//! English.

use super::Words;

pub(super) const ENGLISH: Words = Words {
    always: "
        Mr Mrs Ms Mx Dr Prof Messrs Mlle Mme Hon Rev Fr Msgr Insp Supt Sgt Cpl Capt Cmdr Fig Figs
        e.g i.e eg ie cf viz vs p.s p.p.s n.b
    ",
    before_name: "
        mr mrs mx dr prof st ste mt ft lt sgt capt esq sr jr univ dept esp incl a.k.a aka d.b.a
        Gen Col Maj Adm Gov Sen Rep Pres Pvt Amb Brig Cdr Cpt Det Bros Eq Eqs
    ",
    before_lower: "
        etc inc ltd corp plc llc llp assn assoc ave blvd hwy bldg ext dist max min avg approx circa
        al vol vols pp para sect chap eds trans repr abbr adv anon attn biog bibl cont contd encl est
        excl freq ibid illus intro introd misc mfg mgr mgmt obj orig prelim prob pseud publ ret suppl
        syn usu var govt hosp intl natl asst coll comm cert dir div Co Mass Calif Colo Conn Fla Minn
        Okla Oreg Penn Tenn Tex Wash Wis Wyo
        Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri Sat
        Art Ch Sec Vol App Ed Ex
        a.m p.m a.d b.c b.c.e c.e m.d ph.d b.a m.a b.s m.s b.sc m.sc m.b.a j.d d.d.s r.n d.phil
        q.v w.r.t r.s.v.p t.b.a t.b.d e.t.c w.o o.k
    ",
    before_number: "
        no nos p pg art ch sec col app ed fig figs eq eqs ref refs ver apt rm ste
        jan feb mar apr jun jul aug sep sept oct nov dec
    ",
    units: "in ft lb lbs oz pt qt gal mi km cm mm kg mg ml sq cu hr hrs min mins sec secs wk wks yr yrs mo
        mos tsp tbsp mph kph ms dz doz",
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
    labels: "
        vitamin vitamins plan section part type class grade option point team group hepatitis
        appendix chapter figure table gate room block unit level terminal zone phase step question
        exhibit schedule category line row seat version player variable
    ",
    months: "",
};
